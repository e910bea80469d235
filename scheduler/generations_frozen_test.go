package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

var errKilled = errors.New("killed by the test")

// killer ends a client for good at its nth command: before that is sent, or after it was carried out. A pipeline counts as
// one. It keeps what was sent to scripts.
type killer struct {
	at    int // 0: never
	after bool
	count int
	sent  [][]any
}

func (k *killer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (k *killer) pass(do func() error) error {
	k.count++
	if k.at != 0 && (k.count > k.at || k.count == k.at && !k.after) {
		return &net.OpError{Op: "read", Err: errKilled}
	}
	err := do()
	if k.at != 0 && k.count == k.at {
		return &net.OpError{Op: "read", Err: errKilled}
	}
	return err
}

func (k *killer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return k.pass(func() error {
			if strings.HasPrefix(cmd.Name(), "eval") {
				k.sent = append(k.sent, cmd.Args())
			}
			return next(ctx, cmd)
		})
	}
}

func (k *killer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := k.pass(func() error { return next(ctx, cmds) })
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// promoteKilled promotes over a client that a killer ends.
func (c *cluster) promoteKilled(k *killer, generation string, o scheduler.PromoteOptions) (scheduler.Promotion, error) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	client.AddHook(k)
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return i.Promote(context.Background(), generation, o)
}

// twoVersions are the jobs of two generations: one stays, one changes its schedule, one its settings, one leaves, one comes, one
// follows another job than before, and one follows none any more.
func twoVersions(s *sink) (one, two []jobs.Job, both []string) {
	stays, moves, changes, leaves, comes := eachSecond("stays", s), eachSecond("moves", s), eachSecond("changes", s), eachSecond("leaves", s), eachSecond("comes", s)
	turns, frees := eachSecond("turns", s), eachSecond("frees", s)
	turns.Schedule, turns.After = "", "stays"
	frees.Schedule, frees.After = "", "stays"
	one = []jobs.Job{stays, moves, changes, leaves, turns, frees}
	moves.Schedule, changes.TTL, turns.After = "@every 2s", 7*time.Second, "changes"
	frees.Schedule, frees.After = "@every 3s", ""
	return one, []jobs.Job{stays, moves, changes, comes, turns, frees}, []string{"stays", "changes"}
}

// ledgerOf is what the ledger has stored, without the roster, a line for each record.
func ledgerOf(server *redistest.Embedded) string {
	var b strings.Builder
	m := server.Mini()
	for _, key := range m.Keys() {
		switch kind := key[strings.LastIndex(key, "}")+1:]; kind {
		case ":roster", ":seen", ":sets", ":sets:seen":
			continue
		}
		switch m.Type(key) {
		case "hash":
			fields, _ := m.HKeys(key)
			for _, f := range fields {
				fmt.Fprintln(&b, key, f, m.HGet(key, f))
			}
		case "zset":
			scores, _ := m.SortedSet(key)
			for _, member := range slices.Sorted(maps.Keys(scores)) {
				fmt.Fprintln(&b, key, member, int64(scores[member]))
			}
		case "list":
			rows, _ := m.List(key)
			for _, row := range rows {
				fmt.Fprintln(&b, key, row)
			}
		default:
			value, _ := m.Get(key)
			fmt.Fprintln(&b, key, value)
		}
	}
	return b.String()
}

// frozen runs a test on a cluster of two generations whose nodes are cut off, at one instant: nothing moves but what the
// test does. back puts everything back.
func frozen(t *testing.T, test func(c *cluster, server *redistest.Embedded, back func())) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		s := &sink{}
		one, two, _ := twoVersions(s)
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{Generation: "one", Partitions: 2, DrainTimeout: time.Second}, one...)
		time.Sleep(3 * time.Second)
		c.startOver(network.Client(server.Options()), "b", scheduler.Config{Generation: "two", DrainTimeout: time.Second}, two...)
		time.Sleep(4*time.Second + 300*time.Millisecond)
		network.Cut()
		now := time.Now()
		snapshot := server.Snapshot()
		test(c, server, func() { server.Restore(snapshot) })
		if !time.Now().Equal(now) {
			t.Error("time has passed")
		}
		server.Restore(snapshot)
		network.Heal()
		time.Sleep(8 * time.Second)
	})
}

// replay sends scripts again, as they were sent.
func (c *cluster) replay(sent [][]any) {
	client := c.client()
	defer client.Close()
	for _, args := range sent {
		_ = client.Do(context.Background(), args...).Err() // most are refused
	}
}

// differing is the first line in which two texts differ.
func differing(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "want " + x[i] + "\ngot " + y[i]
		}
	}
	return "one of them is longer"
}
