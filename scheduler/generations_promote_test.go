package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops"
)

var errKilled = errors.New("killed by the test")

// killer ends a client for good at its nth command: before the command is sent, or after it was
// carried out. A pipeline counts as one command. killer records the commands sent to scripts.
type killer struct {
	at    int // 0: never
	after bool

	mu    sync.Mutex // a node calls from many goroutines
	count int
	sent  [][]any
}

func (k *killer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (k *killer) pass(do func() error) error {
	k.mu.Lock()
	k.count++
	count := k.count
	k.mu.Unlock()
	if k.at != 0 && (count > k.at || count == k.at && !k.after) {
		return &net.OpError{Op: "read", Err: errKilled}
	}
	err := do()
	if k.at != 0 && count == k.at {
		return &net.OpError{Op: "read", Err: errKilled}
	}
	return err
}

func (k *killer) keep(cmd redis.Cmder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent = append(k.sent, cmd.Args())
}

func (k *killer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return k.pass(func() error {
			if strings.HasPrefix(cmd.Name(), "eval") {
				k.keep(cmd)
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
func (c *cluster) promoteKilled(k *killer, generation string, o ops.PromoteOptions) (ops.Promotion, error) {
	c.t.Helper()
	return c.ops(k).Promote(context.Background(), generation, o)
}

// twoVersions are the jobs of two generations: one stays, one changes its schedule, one its
// settings, one leaves, one comes, one follows another job than before, and one follows none any
// more.
func twoVersions(s *sink) (one, two []jobs.Job) {
	stays, moves, changes, leaves, comes := eachSecond("stays", s), eachSecond("moves", s), eachSecond("changes", s), eachSecond("leaves", s), eachSecond("comes", s)
	turns, frees := eachSecond("turns", s), eachSecond("frees", s)
	turns.Schedule, turns.After = "", []string{"stays"}
	frees.Schedule, frees.After = "", []string{"stays"}
	one = []jobs.Job{stays, moves, changes, leaves, turns, frees}
	moves.Schedule, changes.TTL, turns.After = "@every 2s", 7*time.Second, []string{"changes"}
	frees.Schedule, frees.After = "@every 3s", nil
	return one, []jobs.Job{stays, moves, changes, comes, turns, frees}
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

// frozen runs a test on a cluster of two generations whose nodes are cut off, at one instant:
// nothing moves but what the test does. back puts everything back.
func frozen(t *testing.T, test func(c *cluster, server *redistest.Embedded, back func())) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		s := &sink{}
		one, two := twoVersions(s)
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
	client := c.redis()
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

// A promotion that was killed before or after any of its commands, and is repeated, has the same
// result as an undisturbed promotion; late commands of the first call change nothing. Promoting
// back restores the old generation's jobs.
func TestPromoteKilledAnywhere(t *testing.T) {
	frozen(t, func(c *cluster, server *redistest.Embedded, back func()) {
		var whole, both killer
		if _, err := c.promoteKilled(&whole, "two", ops.PromoteOptions{}); err != nil {
			t.Fatal(err)
		}
		want := ledgerOf(server)
		for told, is := range map[string]bool{":followers changes turns\n": true, ":followers stays ": false} {
			if strings.Contains(want, told) != is {
				c.t.Errorf("%q is there: %v, in %s", told, !is, want)
			}
		}
		again, err := c.promoteKilled(&killer{}, "two", ops.PromoteOptions{})
		if err != nil || !again.Nothing() || ledgerOf(server) != want {
			t.Errorf("a second promotion did something: %+v, %v", again, err)
		}
		if _, err := c.promoteKilled(&both, "one", ops.PromoteOptions{}); err != nil {
			t.Fatal(err)
		}
		back()
		whole = killer{}
		if _, err := c.promoteKilled(&whole, "two", ops.PromoteOptions{}); err != nil { // now Redis has cached the scripts
			t.Fatal(err)
		}
		t.Logf("%d commands to promote, %d to promote back", whole.count, both.count)
		resumed := 0
		for at := 1; at <= whole.count; at++ {
			for _, after := range []bool{false, true} {
				if c.killedAt(server, back, at, after, want) {
					resumed++
				}
			}
		}
		if resumed < whole.count {
			t.Errorf("%d of %d promotions were resumed: the kills came too early or too late", resumed, 2*whole.count)
		}
	})
}

// killedAt kills a promotion at a command, and repeats it; then, from the same beginning, kills it
// and promotes back. It returns whether the repeated promotion was resumed.
func (c *cluster) killedAt(server *redistest.Embedded, back func(), at int, after bool, want string) bool {
	back()
	if _, err := c.promoteKilled(&killer{at: at, after: after}, "two", ops.PromoteOptions{}); err == nil {
		c.t.Errorf("killed at %d, after %v, and nothing was said", at, after)
	}
	again, err := c.promoteKilled(&killer{}, "two", ops.PromoteOptions{})
	if err != nil {
		c.t.Errorf("killed at %d, after %v, and repeated: %v", at, after, err)
	}
	if got := ledgerOf(server); got != want {
		c.t.Errorf("killed at %d, after %v, and repeated: %s", at, after, differing(want, got))
	}
	back()
	first := &killer{at: at, after: after}
	_, _ = c.promoteKilled(first, "two", ops.PromoteOptions{})
	p, err := c.promoteKilled(&killer{}, "one", ops.PromoteOptions{})
	if err != nil {
		c.t.Errorf("killed at %d, after %v, and promoted back: %v", at, after, err)
	}
	c.allOf("one", p)
	was := ledgerOf(server)
	c.replay(first.sent)
	if got := ledgerOf(server); got != was {
		c.t.Errorf("killed at %d, after %v: late commands of it changed: %s", at, after, differing(was, got))
	}
	return again.Resumed
}

// allOf checks that all jobs which the generation ever had are its.
func (c *cluster) allOf(generation string, p ops.Promotion) {
	c.t.Helper()
	i, ctx := c.ops(), c.t.Context()
	for _, j := range must[ops.Page[ops.JobView]](c.t)(i.ListJobs(ctx, ops.JobFilter{})).Items {
		if j.Generation != generation || !j.Orphan != (j.Owner != "") || j.Orphan != (j.Name == "comes") {
			c.t.Errorf("after %+v: %s is of generation %s, owner %q", p, j.Name, j.Generation, j.Owner)
		}
	}
	if g := must[[]ops.GenerationView](c.t)(i.ListGenerations(ctx)); g[0].State != ops.GenerationActive || g[1].State != ops.GenerationStandby {
		c.t.Errorf("generations %+v", g)
	}
}

// The same among living nodes: killed at one command after the other, left half done for a while,
// then repeated or undone. Every tick of what both generations have runs once, and no job waits
// long (P7).
func TestPromoteKilledAmongLivingNodes(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		one, two := twoVersions(s)
		c.twoGenerations(server, scheduler.Config{Partitions: 2, HistoryKeep: 2000}, one, two)
		began := time.Now()
		active, other := "one", "two"
		kills := 0
		for at := 2; at <= 38; at += 3 {
			if _, err := c.promoteKilled(&killer{at: at, after: at%2 == 0}, other, ops.PromoteOptions{}); err != nil {
				kills++
			}
			time.Sleep(time.Duration(300+at*97%1000) * time.Millisecond)
			if at%9 != 2 {
				active, other = other, active // it is brought to its end
			}
			c.promote(active, ops.PromoteOptions{})
			time.Sleep(1100 * time.Millisecond)
		}
		end := time.Now()
		time.Sleep(4 * time.Second)
		if latest := s.each(t, []jobs.Job{one[0], one[2]}, began.Add(-2*time.Second), end); latest > longestLag {
			t.Errorf("a tick was %s late", latest)
		}
		if kills < 9 {
			t.Errorf("only %d promotions were killed", kills)
		}
		c.end()
		s.check(t)
	})
}

// A promotion of all jobs that was killed half way is not forgotten over one of some.
func TestPromoteSomeAmidAll(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		list := many(6, &sink{})
		c.start("a", scheduler.Config{Generation: "old"}, list...)
		time.Sleep(3 * time.Second)
		c.start("b", scheduler.Config{Generation: "neo"}, list...)
		time.Sleep(5 * time.Second)
		begun := func() string { return server.Mini().HGet("{escapement}:control", "promoting") }
		for at := 1; begun() == "" && at < 60; at++ {
			if _, err := c.promoteKilled(&killer{at: at, after: true}, "neo", ops.PromoteOptions{}); err == nil {
				t.Fatal("it was never killed half way")
			}
		}
		some := ops.PromoteOptions{Pattern: "job-0*"}
		_, err := c.promoteKilled(&killer{}, "old", some)
		refused(t, err, ops.ErrRefused, `promote "neo" again`)
		if _, err := c.promoteKilled(&killer{}, "neo", ops.PromoteOptions{}); err != nil || begun() != "" {
			t.Errorf("promoted again: %v, under way %q", err, begun())
		}
		if _, err := c.promoteKilled(&killer{}, "old", some); err != nil {
			t.Errorf("then some of them: %v", err)
		}
		time.Sleep(3 * time.Second)
	})
}

// A promotion on a connection so slow that each question is older than max_skew on arrival fails
// with that cause, and not with "jobs kept changing". The same call succeeds on a fast connection.
func TestPromoteOverASlowWay(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("old", scheduler.Config{}, eachSecond("job", s))
		time.Sleep(3 * time.Second)
		c.start("new", scheduler.Config{Generation: "neo"}, eachSecond("job", s))
		time.Sleep(5 * time.Second)
		i := c.ops(around{script: "define", before: func() { time.Sleep(1500 * time.Millisecond) }})
		if _, err := i.Promote(t.Context(), "neo", ops.PromoteOptions{}); !errors.Is(err, ledger.ErrClock) {
			t.Errorf("got %v", err)
		}
		if p := c.promote("neo", ops.PromoteOptions{}); !p.Resumed || p.Switched.Count != 1 {
			t.Errorf("again: %+v", p)
		}
	})
}

// The changes of a promotion are shown before the promotion.
func TestGenerationsCompare(t *testing.T) {
	frozen(t, func(c *cluster, _ *redistest.Embedded, _ func()) {
		list := must[[]ops.GenerationView](t)(c.ops().ListGenerations(c.t.Context()))
		if len(list) != 2 {
			c.t.Fatalf("%+v", list)
		}
		one, two := list[0], list[1]
		if one.Name != "one" || one.State != ops.GenerationActive || one.Running != 6 || one.Jobs != 6 || one.Changed != (ops.ChangeCounts{}) {
			c.t.Errorf("active: %+v", one)
		}
		if two.State != ops.GenerationStandby || two.Running != 0 || two.Jobs != 6 || two.Nodes.Count != 1 || two.Unsettled.Count != 0 ||
			strings.Join(two.Added.First, " ") != "comes" || strings.Join(two.Removed.First, " ") != "leaves" {
			c.t.Errorf("standby: %+v", two)
		}
		if two.Changed != (ops.ChangeCounts{Schedules: 3, Settings: 1}) || two.Settings[0].Job != "changes" || strings.Join(two.Settings[0].Fields, " ") != "ttl" {
			c.t.Errorf("changes: %+v", two)
		}
		for _, x := range two.Schedules {
			if x.Job == "moves" && (x.Now.Ticks != 86400 || x.New.Ticks != 43200 || len(x.OnlyNow) != 5 || len(x.OnlyNew) != 0 || ops.FormatTime(x.OnlyNow[1]) != "2000-01-01T00:00:11.000Z") ||
				x.Job == "frees" && (x.Now.After != "stays" || x.Now.Ticks != 0 || x.New.Ticks != 28800) ||
				x.Job == "turns" && (x.Now.After != "stays" || x.New.After != "changes" || len(x.OnlyNow)+len(x.OnlyNew) != 0) {
				c.t.Errorf("%+v", x)
			}
		}
	})
}

// Any number of generations may stand by, and each can be promoted, and promoted away again.
func TestPromoteAmongMany(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("old", scheduler.Config{Partitions: 1}, eachSecond("job", s))
		time.Sleep(3 * time.Second)
		for i := range 9 {
			c.start(fmt.Sprint("n", i), scheduler.Config{Partitions: 1, Generation: fmt.Sprint("g", i)}, eachSecond("job", s))
		}
		time.Sleep(5 * time.Second)
		for _, generation := range []string{"g1", "g2", ""} {
			if p := c.promote(generation, ops.PromoteOptions{}); p.Switched.Count != 1 {
				t.Errorf("%q: %+v", generation, p)
			}
			for _, g := range must[[]ops.GenerationView](t)(c.ops().ListGenerations(t.Context())) {
				if active := g.Name == generation; active != (g.State == ops.GenerationActive) || active != (g.Running == 1) {
					t.Errorf("after the promotion of %q: %+v", generation, g)
				}
			}
			time.Sleep(3 * time.Second)
		}
	})
}
