package notify_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/notify"
)

// TestStalled: a run that stalls is told of once, whoever tells, however often it stalls, and while it goes on. It is over when a run succeeds.
func TestStalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		release := make(chan struct{})
		for _, name := range []string{"n1", "n2"} {
			w.node(name, jobs.Job{Name: "long", Schedule: "* * * * *", TTL: 5 * time.Second, StallAfter: 20 * time.Second, Func: func(_ context.Context, run *jobs.Run) error {
				select {
				case <-time.After(50 * time.Second):
					run.Progress(1, 2, "gets on")
					<-release
				case <-release:
				}
				return nil
			}})
		}
		first := w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n1")}})
		time.Sleep(100 * time.Second) // it stalled after 20 s, and again 70 s after its start
		box.want(t, "long stalled")
		e := box.all()[0].Events[0]
		if e.Run == "" || e.Tick == nil || !strings.HasPrefix(e.Node, "n") || !strings.Contains(e.Text, ": no progress for 20s") {
			t.Errorf("event %+v", e)
		}
		first.stop()
		w.notifier(notify.Config{Targets: []notify.Target{
			box.target("team", "n2"), {Name: "other", On: []notify.Kind{notify.Failed}, Func: func(context.Context, notify.Message) error {
				t.Error("a target that wants failures alone is told")
				return nil
			}},
		}})
		time.Sleep(3 * time.Minute)
		box.want(t, "long stalled")
		close(release)
		time.Sleep(time.Minute)
		box.want(t, "long stalled", "long stalled over")
	})
}

// TestStalledAndCancelled: each attempt that is cancelled for a stall is told of, though it has ended before anybody looked.
func TestStalledAndCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var well atomic.Bool
		well.Store(true)
		w.node("n", jobs.Job{
			Name: "hangs", Schedule: "* * * * *", TTL: 5 * time.Second, StallAfter: 2 * time.Second, OnStall: jobs.OnStallCancel,
			Func: func(ctx context.Context, _ *jobs.Run) error {
				if well.Load() {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			},
		})
		w.node("m", jobs.Job{Name: "cancelled", Schedule: "* * * * *", TTL: 5 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		w.notifier(notify.Config{Every: 20 * time.Second, Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(90 * time.Second)
		well.Store(false)
		ops := w.client()
		runs, err := ops.Runs(t.Context(), scheduler.RunFilter{Job: "cancelled"})
		if err != nil || len(runs) == 0 {
			t.Fatal(err, runs)
		}
		if _, err := ops.Cancel(t.Context(), runs[0].Run, scheduler.CancelOptions{}); err != nil { // by an operator: no stall
			t.Fatal(err)
		}
		time.Sleep(140 * time.Second) // two attempts
		box.want(t, "hangs stalled", "hangs stalled")
		well.Store(true)
		time.Sleep(2 * time.Minute)
		box.want(t, "hangs stalled", "hangs stalled", "hangs stalled over")
	})
}
