package scheduler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// running is a node that has run for a second, its server, and a function that ends both.
func running(t *testing.T, job jobs.Job) (n *Node, server *redistest.Embedded, stop func()) {
	t.Helper()
	server, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	client, reg := server.Client(), jobs.NewRegistry()
	reg.MustAdd(job)
	if n, err = New(client, reg, Config{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	time.Sleep(time.Second)
	synctest.Wait()
	return n, server, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = client.Close()
		server.Close()
	}
}

// A grant of the server before, whose answer comes when the new one was told of what runs, is not among that: it is not begun.
func TestFailoverOldGrantIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan string, 2)
		n, _, stop := running(t, jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(_ context.Context, r *jobs.Run) error {
			calls <- r.ID()
			return nil
		}})
		for _, granted := range []grant{
			{lease: ledger.Lease{Run: "of the one before", Token: 1}, server: "another"},
			{lease: ledger.Lease{Run: "of this one", Token: 2}, server: n.clock.server()},
		} {
			granted.job, granted.asked = n.jobs[0], time.Now()
			granted.lease.Job, granted.lease.Shards, granted.lease.Attempt = "job", 1, 1
			n.slots.take()
			n.runner.start(granted, false)
		}
		time.Sleep(time.Second)
		if got := <-calls; got != "of this one" || len(calls) > 0 {
			t.Errorf("the function was called for the run %q, and %d times more", got, len(calls))
		}
		stop()
		if n.slots.used() != 0 {
			t.Errorf("ended with %d slots in use", n.slots.used())
		}
	})
}

// A server that was told, seemed to be another one, and came back is told again: it may have been that other one meanwhile.
func TestFailoverTellsAgainWhoComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, ended := make(chan struct{}, 9), make(chan error, 9)
		n, server, stop := running(t, jobs.Job{Name: "job", Schedule: "@every 10s", Func: func(ctx context.Context, _ *jobs.Run) error {
			started <- struct{}{}
			select {
			case <-time.After(9 * time.Second):
			case <-ctx.Done():
			}
			ended <- context.Cause(ctx)
			return nil
		}})
		before := server.Snapshot()
		<-started
		time.Sleep(500 * time.Millisecond)

		now, _, err := n.ledger.Time(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.clock.add(time.Now(), time.Now(), now, "another")
		n.failover.step(t.Context()) // which is refused, by the server that is there
		server.Restore(before)
		if cause := <-ended; cause != nil {
			t.Errorf("the run that was to be told again has ended: %v", cause)
		}
		if len(started) > 0 {
			t.Error("its tick was run again")
		}
		stop()
	})
}

// A partition whose master has been another one meanwhile is told again, though it is back; one whose master has stayed is not, unless it
// was not told of all.
func TestFailoverForgetsWhatWasKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, stop := running(t, jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }})
		defer stop()
		server := func(first, others string) string {
			return "home," + first + strings.Repeat(","+others, n.ledger.Partitions()-1)
		}
		for _, c := range []struct {
			what   string
			before func(f *failover)
			now    string
			told   []string // the runs that are to be told again
		}{
			{"all have stayed", func(f *failover) { f.begin(server("a", "b")) }, server("a", "b"), nil},
			{"one is new", func(f *failover) { f.begin(server("a", "b")) }, server("x", "b"), []string{"first"}},
			{"one is back, the others are new", func(f *failover) {
				f.begin(server("a", "b"))
				f.notice(server("x", "b"))
			}, server("a", "y"), []string{"first", "last"}},
			{"one was not told of all", func(f *failover) {
				f.begin("before")
				now := n.clock.server()
				f.notice(now)
				if !f.assert(t.Context(), now, true) {
					t.Error("not told")
				}
			}, server(n.clock.server(), "y"), []string{"first", "last"}},
		} {
			f := newFailover(n)
			for run, part := range map[string]int{"first": 0, "last": n.ledger.Partitions() - 1} {
				f.memory.add([]*ending{{grant: grant{job: &job{part: part}, lease: ledger.Lease{Run: run, Job: "nobody's", Tick: 1, Prev: 1, Shards: 1, Attempt: 1, Token: 1, Overlap: "s", Attempts: 1}}, report: ledger.Report{Run: run}}})
			}
			c.before(f)
			f.notice(c.now)
			var told []string
			for _, batch := range f.batches(c.now) {
				told = append(told, batch[0].g.lease.Run)
			}
			if !slices.Equal(told, c.told) {
				t.Errorf("%s: %q are told again, want %q", c.what, told, c.told)
			}
		}
	})
}

// What a node remembers of ends is bounded, in time and in number.
func TestFailoverRemembersSoMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		payload := ledger.Lease{Payload: make([]byte, rememberPayload+1)}
		for range rememberMax + 10 {
			m.add([]*ending{{grant: grant{lease: payload}, report: ledger.Report{Output: []byte("much")}}})
		}
		if len(m.ended) != rememberMax || m.ended[0].report.Output != nil || m.ended[0].grant.lease.Payload != nil {
			t.Errorf("%d ends are remembered, want %d without what is large", len(m.ended), rememberMax)
		}
		time.Sleep(rememberFor / 2)
		m.add([]*ending{{report: ledger.Report{Run: "last"}}})
		time.Sleep(rememberFor/2 + time.Second)
		if got := m.recent(); len(got) != 1 || got[0].report.Run != "last" {
			t.Errorf("%d ends are remembered after %s", len(got), rememberFor)
		}
	})
}
