package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// cancel ends the one run of a job that is going, as an operator does.
func (c *cluster) cancel(job string, o scheduler.CancelOptions) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range c.runs(job) {
		if r.Outcome != "running" {
			continue
		}
		if told, err := i.Cancel(context.Background(), r.Run, o); err != nil || told != scheduler.CancelTold {
			c.t.Fatalf("cancel: %q, %v", told, err)
		}
		return
	}
	c.t.Fatalf("%s has no run that is going", job)
}

// An operator cancels a run: its context ends at the next sweep, with a cause that says who and why, and
// no further try follows, whether it is calling its function or waiting for the next try.
func TestCancelledRunsEnd(t *testing.T) {
	for name, f := range map[string]func(context.Context) error{
		"calling": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"waiting": func(context.Context) error { return errors.New("no paper") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				var a attempts
				var cause error
				n := c.start("a", scheduler.Config{MaxRunning: 1}, a.trier(jobs.Retry{Max: 9, Backoff: time.Minute}, func(ctx context.Context, _ int) error {
					err := f(ctx)
					cause = context.Cause(ctx)
					return err
				}))
				time.Sleep(62 * time.Second)
				c.cancel("job", scheduler.CancelOptions{Author: "anna", Reason: "wrong day"})
				asked := time.Now()
				time.Sleep(time.Second)
				row := c.runs("job")[0]
				if row.Outcome != "cancelled" || row.Reason != "cancelled by anna: wrong day" || row.Tries != 1 {
					t.Fatalf("recorded %s, %q, after %d tries", row.Outcome, row.Reason, row.Tries)
				}
				if took := time.Time(*row.Ended).Sub(asked); took > 250*time.Millisecond {
					t.Errorf("ended %s after it was cancelled, want at the next sweep, 250ms", took)
				}
				switch name {
				case "calling":
					if !errors.Is(cause, jobs.ErrCancelled) || row.Error != "cancelled by anna: wrong day" {
						t.Errorf("cause %v, error %q", cause, row.Error)
					}
				case "waiting":
					if cause != nil || row.Error != "no paper" {
						t.Errorf("cause %v, error %q", cause, row.Error)
					}
				}
				c.leave(n)
			})
		})
	}
}

// What the function returned counts first.
func TestCancelledTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		c.start("a", scheduler.Config{}, a.trier(jobs.Retry{}, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return nil
		}))
		time.Sleep(61 * time.Second)
		synctest.Wait() // what the functions noted is read below
		c.cancel("job", scheduler.CancelOptions{})
		time.Sleep(time.Second)
		if got := outcomes(c.runs("job")); got["succeeded"] != 1 || len(got) != 1 {
			t.Errorf("history %v, want 1 succeeded", got)
		}
	})
}

// A newer tick of a job with overlap replace ends the run that goes on.
func TestReplacedRunsAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a attempts
		causes := make(chan error, 9)
		job := a.trier(jobs.Retry{}, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		job.Overlap, job.OnCrash = jobs.OverlapReplace, jobs.OnCrashRerun
		c.start("a", scheduler.Config{DrainTimeout: time.Second}, job)
		time.Sleep(125 * time.Second)
		synctest.Wait() // what the functions noted is read below
		if cause := <-causes; !errors.Is(cause, jobs.ErrReplaced) {
			t.Errorf("cause %v", cause)
		}
		if got := outcomes(c.runs("job")); got["cancelled(replaced)"] != 1 || got["running"] != 1 || len(got) != 2 {
			t.Errorf("history %v, want 1 replaced by 1 that runs", got)
		}
	})
}

// A drain ends a run of a job that is to be run again: its next attempt runs on another node at once,
// under the id that follows from the first one's, and not for the job that only records it.
func TestDrainedRunsAreRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a, b attempts
		again := a.trier(jobs.Retry{Max: 3}, func(ctx context.Context, _ int) error {
			if len(a.runs) > 1 {
				return nil
			}
			<-ctx.Done()
			return errors.New("half done")
		})
		again.OnCrash = jobs.OnCrashRerun
		once := b.trier(jobs.Retry{}, func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		once.Name = "once"
		n := c.start("a", scheduler.Config{DrainTimeout: 3 * time.Second}, again, once)
		time.Sleep(61 * time.Second)
		synctest.Wait() // what the functions noted is read below
		c.start("b", scheduler.Config{}, again, once)
		c.leave(n)
		time.Sleep(3 * time.Second)
		synctest.Wait() // what the functions noted is read below
		rows := c.runs("job")
		if len(rows) != 2 || len(a.runs) != 2 {
			t.Fatalf("%d runs recorded, %d tries; want 2 and 2: %v", len(rows), len(a.runs), outcomes(rows))
		}
		first, next := a.runs[0], a.runs[1]
		if next.ID() != ledger.Successor(first.ID()) || next.Attempt() != 2 || next.Try() != 1 || next.Node() != "b" ||
			next.Trigger() != jobs.TriggerRerun || next.Token() <= first.Token() || !next.Tick().Equal(first.Tick()) {
			t.Errorf("attempt %d, try %d, on %s, %s, of %s", next.Attempt(), next.Try(), next.Node(), next.Trigger(), next.Tick())
		}
		for _, row := range rows {
			if row.Attempt == 1 && (row.Outcome != "cancelled" || row.Reason != "draining" || row.Error != "half done") {
				t.Errorf("attempt 1: %s, %q, %q", row.Outcome, row.Reason, row.Error)
			}
		}
		if got := outcomes(c.runs("once")); got["cancelled(draining)"] != 1 || len(got) != 1 {
			t.Errorf("the other job's history %v", got)
		}
	})
}

// The node is cut off, loses the lease and gets through again before anybody reaps: it settles the run as
// lost, and the next attempt follows.
func TestLostRunsAreRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var a attempts
		var network redistest.Net
		job := a.trier(jobs.Retry{Max: 3}, func(ctx context.Context, _ int) error {
			if len(a.runs) > 1 {
				return nil
			}
			<-ctx.Done()
			network.Heal()
			return context.Cause(ctx)
		})
		job.OnCrash, job.TTL = jobs.OnCrashRerun, 20*time.Second
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{}, job)
		time.Sleep(65 * time.Second)
		synctest.Wait() // what the functions noted is read below
		network.Cut()
		time.Sleep(50 * time.Second)
		synctest.Wait() // what the functions noted is read below
		if len(a.runs) != 2 || a.runs[1].ID() != ledger.Successor(a.runs[0].ID()) {
			t.Errorf("%d tries, want a second one in the next attempt", len(a.runs))
		}
		if got := outcomes(c.runs("job")); got["lost"] != 1 || got["succeeded"] != 1 {
			t.Errorf("history %v, want 1 lost and 1 succeeded", got)
		}
	})
}
