package scheduler_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestProgress: a run's progress is sent with its renewal, appears in list and get with an
// estimate, and is gone when the run has ended.
func TestProgress(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		say, admin := make(chan jobs.Progress), c.ops()
		job := jobs.Job{Name: "job", Schedule: "@yearly", TTL: 6 * time.Second, Func: func(_ context.Context, run *jobs.Run) error {
			for p := range say {
				run.Progress(p.Done, p.Total, p.Note)
			}
			return nil
		}}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(4 * time.Second)
		id := must[string](t)(admin.Trigger(t.Context(), "job", ops.TriggerOptions{}))
		get := func() *ops.ProgressView {
			got := must[ops.RunView](t)(admin.GetRun(t.Context(), id)).Progress
			list := must[ops.Page[ops.RunView]](t)(admin.ListRuns(t.Context(), ops.RunFilter{})).Items
			if (got == nil) != (list[0].Progress == nil) || got != nil && got.Done != list[0].Progress.Done {
				t.Errorf("get has %+v, list has %+v", got, list[0].Progress)
			}
			return got
		}
		time.Sleep(10 * time.Second)
		if p := get(); p != nil {
			t.Errorf("before it says anything: %+v", p)
		}
		say <- jobs.Progress{Done: 100, Total: 200}
		begun := time.Now()
		time.Sleep(10 * time.Second)
		if p := get(); p == nil || p.Done != 100 || !p.End.IsZero() {
			t.Errorf("at first: %+v", p)
		}
		say <- jobs.Progress{Done: 120, Total: 200, Note: "page\n" + strings.Repeat("é", 200)}
		time.Sleep(2*time.Second + 100*time.Millisecond)
		p := get()
		if p == nil || p.Done != 120 || p.Total != 200 || p.Note != "page "+strings.Repeat("é", 97) || p.End.IsZero() {
			t.Fatalf("then: %+v", p)
		}
		if end := p.End.Sub(begun); end < 49*time.Second || end > 51*time.Second {
			t.Errorf("20 of 100 took 10 s, and it is to end after %s", end)
		}
		say <- jobs.Progress{Done: 3, Total: 0}
		time.Sleep(3 * time.Second)
		if p := get(); p == nil || p.Done != 3 || !p.End.IsZero() {
			t.Errorf("when it has begun again: %+v", p)
		}
		close(say)
		must[ops.RunView](t)(admin.WaitRun(t.Context(), id))
		if p := get(); p != nil {
			t.Errorf("when it has ended: %+v", p)
		}
	})
}

// TestStalled: a run without progress for so long calls Stalled, once until it goes on, and is
// cancelled where its job requires it. A run with progress, or between tries, is left alone.
func TestStalled(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var told, cancelled atomic.Int64
		hooks := &scheduler.Hooks{Stalled: func(e scheduler.RunEvent) {
			if e.Job == "hangs" {
				cancelled.Add(1)
			} else {
				told.Add(1)
			}
		}}
		wait := func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		base := jobs.Job{Schedule: "@yearly", TTL: 6 * time.Second, StallAfter: 10 * time.Second}
		hangs, slow, busy := base, base, base
		hangs.Name, hangs.OnStall = "hangs", jobs.OnStallCancel
		hangs.Func = func(ctx context.Context, run *jobs.Run) error {
			run.Progress(1, 9, "")
			return wait(ctx, forever)
		}
		slow.Name = "slow"
		slow.Func = func(ctx context.Context, run *jobs.Run) error {
			_ = wait(ctx, 25*time.Second)
			run.Progress(1, 2, "")
			run.Progress(1, 2, "")
			return wait(ctx, 25*time.Second)
		}
		busy.Name, busy.OnStall, busy.Retry = "busy", jobs.OnStallCancel, jobs.Retry{Max: 1, Backoff: time.Minute, MaxBackoff: time.Minute}
		busy.Func = func(ctx context.Context, run *jobs.Run) error {
			for n := range 6 {
				if n%2 == 0 {
					run.Progress(int64(n), 0, "")
				} else if err := run.Save(ctx, nil); err != nil {
					return err
				}
				if err := wait(ctx, 8*time.Second); err != nil {
					return err
				}
			}
			if run.Try() == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}
		a := c.start("a", scheduler.Config{Hooks: hooks}, hangs, slow, busy)
		time.Sleep(4 * time.Second)
		admin, ids := c.ops(), map[string]string{}
		for _, job := range []string{"hangs", "slow", "busy"} {
			ids[job] = must[string](t)(admin.Trigger(t.Context(), job, ops.TriggerOptions{}))
		}
		begun := time.Now()
		v := must[ops.RunView](t)(admin.WaitRun(t.Context(), ids["hangs"]))
		if v.Outcome != jobs.OutcomeCancelled || v.Reason != "stalled" || v.Error != jobs.ErrStalled.Error() || time.Since(begun) > 15*time.Second {
			t.Errorf("it hung: %s (%s) %s after %s", v.Outcome, v.Reason, v.Error, time.Since(begun))
		}
		for _, job := range []string{"slow", "busy"} {
			if v := must[ops.RunView](t)(admin.WaitRun(t.Context(), ids[job])); v.Outcome != jobs.OutcomeSucceeded {
				t.Errorf("%s: %s (%s) %s", job, v.Outcome, v.Reason, v.Error)
			}
		}
		if told.Load() != 2 || cancelled.Load() != 1 || c.logs.count(`msg="run made no progress"`) != 3 || a.Stats().Stalled != 3 {
			t.Errorf("told %d times of slow and %d times of hangs, %d times in the log, counted %d", told.Load(), cancelled.Load(),
				c.logs.count(`msg="run made no progress"`), a.Stats().Stalled)
		}
	})
}
