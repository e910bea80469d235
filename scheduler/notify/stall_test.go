package notify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/notify"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestStalled: a stalled run is notified once, by whichever notifier, however often it stalls, and
// while it goes on. It is over when a run succeeds.
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
		if e.Run == "" || e.Tick.IsZero() || !strings.HasPrefix(e.Node, "n") || !strings.Contains(e.Text, ": no progress for 20s") {
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

// TestStalledAndCancelled: each attempt that is cancelled for a stall is notified, though it has
// ended before the next look.
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
		admin := w.client()
		runs, err := admin.ListRuns(t.Context(), ops.RunFilter{Job: "cancelled"})
		if err != nil || len(runs.Items) == 0 {
			t.Fatal(err, runs)
		}
		if _, err := admin.Cancel(t.Context(), runs.Items[0].Run, ops.CancelOptions{}); err != nil { // by an operator: no stall
			t.Fatal(err)
		}
		time.Sleep(140 * time.Second) // two attempts
		box.want(t, "hangs stalled", "hangs stalled")
		well.Store(true)
		time.Sleep(2 * time.Minute)
		box.want(t, "hangs stalled", "hangs stalled", "hangs stalled over")
	})
}

// TestStalledAndOver: a stalled run that ends well is over within a few looks, whenever between two
// heartbeats and two looks it ends, though no other run of its job is near. A stall that was not
// notified before the run ended well is not notified after.
func TestStalledAndOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		const offsets = 24 // 240 ms each: more than the time between two looks
		rare := func(name string, runs time.Duration) jobs.Job {
			return jobs.Job{Name: name, Schedule: "*/10 * * * *", TTL: 5 * time.Second, StallAfter: 20 * time.Second,
				Func: func(context.Context, *jobs.Run) error { time.Sleep(runs); return nil }}
		}
		var list []jobs.Job
		for i := range offsets {
			offset := time.Duration(i) * 240 * time.Millisecond
			list = append(list, rare(fmt.Sprintf("long-%02d", i), 40*time.Second+offset), rare(fmt.Sprintf("short-%02d", i), 21*time.Second+offset))
		}
		for few := range slices.Chunk(list, 20) { // a heartbeat names no more
			w.node("of-"+few[0].Name, few...)
		}
		time.Sleep(850 * time.Millisecond)
		long, short := box.target("long", "n"), box.target("short", "n") // a message lists 50 events at most
		long.Jobs, short.Jobs = "long-*", "short-*"
		w.notifier(notify.Config{GroupFor: time.Second, Targets: []notify.Target{long, short}})
		time.Sleep(13 * time.Minute)
		came := make(map[string]int)
		for _, e := range box.events() {
			came[e]++
		}
		for _, j := range list {
			told, over := came[j.Name+" stalled"], came[j.Name+" stalled over"]
			if told != over || told > 1 || told == 0 && strings.HasPrefix(j.Name, "long") {
				t.Errorf("%s: told %d times, and over %d times", j.Name, told, over)
			}
		}
	})
}

// TestStalledSince: the recovery has the start of the job's first notified stall.
func TestStalledSince(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var box inbox
		var well atomic.Bool
		w.node("n", jobs.Job{
			Name: "hangs", Schedule: "* * * * *", TTL: 5 * time.Second, StallAfter: 2 * time.Second, OnStall: jobs.OnStallCancel,
			Func: func(ctx context.Context, _ *jobs.Run) error {
				if !well.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			},
		})
		w.notifier(notify.Config{Targets: []notify.Target{box.target("team", "n")}})
		time.Sleep(4*time.Minute + 30*time.Second)
		well.Store(true)
		time.Sleep(time.Minute)
		box.want(t, "hangs stalled", "hangs stalled", "hangs stalled", "hangs stalled", "hangs stalled over")
		all := box.all()
		first, over := all[0].Events[0], all[len(all)-1].Events[0]
		if !over.Since.Equal(first.At) {
			t.Errorf("over since %v, first told at %v", over.Since, first.At)
		}
	})
}
