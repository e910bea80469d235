package failover

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock reads the ledger's clock once, and runs on from there.
type clock struct{ redis, local time.Time }

func (c *clock) Now() time.Time      { return c.redis.Add(time.Since(c.local)) }
func (c *clock) LastRead() time.Time { return c.Now() }

// calls counts how the calls to a master went.
type calls struct {
	failed                     map[string]int // by role
	unknown, restored, resumed int
}

func (c *calls) Fail(role string, _ error) { c.failed[role]++ }
func (c *calls) Unknown()                  { c.unknown++ }
func (c *calls) Restored()                 { c.restored++ }
func (c *calls) GrantsResumed()            { c.resumed++ }

// grants are the runs of a node.
type grants []work.Grant

func (g grants) Grants() []work.Grant { return g }

// node is a node with one lane, on an embedded Redis.
type node struct {
	*Epochs
	led    *ledger.Ledger
	client *redis.Client
	redis  *redistest.Embedded
	calls  *calls
	lost   chan struct{}
}

const hold = 3 * time.Second

// newNode makes a node that has joined a new namespace, whose sample is changed.
func newNode(t *testing.T, change func(*ledger.Sample)) *node {
	t.Helper()
	embedded, client := redistest.StartEmbedded(t)
	led, err := ledger.Join(t.Context(), client, ledger.Config{MaxSkew: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	n := join(t, led, "n1")
	n.redis, n.client = embedded, client
	s := n.sample(t)
	change(&s)
	n.Join(s)
	return n
}

// join makes a node with these runs.
func join(t *testing.T, led *ledger.Ledger, id string, runs ...work.Grant) *node {
	t.Helper()
	now, err := led.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{led: led, calls: &calls{failed: make(map[string]int)}, lost: make(chan struct{}, 1)}
	n.Epochs = NewEpochs(Config{
		ID: id, Name: id, Ledger: led, Clock: &clock{now, time.Now()}, Jobs: work.NewJobs(nil, "v1"), Reporter: NewReporter(grants(runs)),
		Restore: func(ctx context.Context, _ []int) error { _, err := led.Restore(ctx, ""); return err },
		Beat:    make(chan struct{}, 1), Lost: n.lost, Routes: make(chan struct{}, 1), Hold: hold, SweepEvery: 250 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}, ledger.Master{}, n.calls, make(chan struct{}, 1))
	n.Add(0, &Epoch{})
	return n
}

// same changes nothing.
func same(*ledger.Sample) {}

func (n *node) sample(t *testing.T) ledger.Sample {
	t.Helper()
	s, err := n.led.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (n *node) state() State { return n.epochs[0].State() }

// jobOf is a job of this definition.
func jobOf(t *testing.T, own jobs.Job) *work.Job {
	t.Helper()
	schedule, err := own.ParsedSchedule()
	if err != nil {
		t.Fatal(err)
	}
	return &work.Job{Job: own, Schedule: schedule, Def: own.Definition(), Digest: own.Definition().Digest()}
}

// define stores a job at a cursor, as if it had been stored for long.
func (n *node) define(t *testing.T, own jobs.Job, cursor int64) {
	t.Helper()
	ctx := t.Context()
	d := own.Definition()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	defined, err := define.Define(ctx, n.led, n.Clock.Now().UnixMilli(), []define.Definition{{Job: own.Name, Digest: d.Digest(), Text: text, Cursor: cursor}})
	if err != nil || defined[0].Status != "created" {
		t.Fatal(defined, err)
	}
	for _, key := range n.client.Keys(ctx, "*anew*").Val() {
		n.client.Del(ctx, key)
	}
}

// cursor is a job's cursor as stored.
func (n *node) cursor(t *testing.T, job string) int64 {
	t.Helper()
	entries, err := query.Named(t.Context(), n.led, []string{job})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	return entries[0].Cursor
}
