package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// said is the reason of a run, as Run and as a list have it.
func said(t *testing.T, i *scheduler.Inspector, id string) string {
	t.Helper()
	v := must[scheduler.RunView](t)(i.Run(t.Context(), id))
	list := must[[]scheduler.RunView](t)(i.Runs(t.Context(), scheduler.RunFilter{Outcome: "running"}))
	at := slices.IndexFunc(list, func(r scheduler.RunView) bool { return r.Run == v.Run })
	if at < 0 || list[at].Reason != v.Reason || list[at].DurationMS != v.DurationMS {
		t.Errorf("the list disagrees with %+v: %+v", v, list)
	}
	return v.Reason
}

func TestWhatARunWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, ctx := c.inspector(), t.Context()
		due := time.Now().Add(time.Hour)
		later := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{At: due}))
		if got := said(t, i, later); got != "pending until "+scheduler.Stamp(due).String() {
			t.Errorf("before its time: %q", got)
		}
		first := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		if got := said(t, i, first); got != "pending: no living node holds the job" {
			t.Errorf("without a node: %q", got)
		}
		b.claim(ledger.Granted, ledger.Claim{Run: first, Pending: true})
		must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		if got := len(must[[]scheduler.RunView](t)(i.Runs(ctx, scheduler.RunFilter{Outcome: scheduler.OutcomePending}))); got != 2 {
			t.Errorf("%d are pending, want 2", got)
		}
	})
}

// A node is there, and one run has to wait for another.
func TestPendingBehindARun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.inspector(), t.Context()
		hold := make(chan struct{})
		slow := jobs.Job{Name: "slow", Schedule: "@yearly"}
		slow.Func = func(ctx context.Context, _ *jobs.Run) error {
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return nil
		}
		c.start("a", scheduler.Config{}, slow)
		time.Sleep(time.Second)
		first := must[string](t)(i.Trigger(ctx, "slow", scheduler.TriggerOptions{}))
		time.Sleep(3 * time.Second)
		second := must[string](t)(i.Trigger(ctx, "slow", scheduler.TriggerOptions{}))
		if got := said(t, i, second); got != "pending: job is held by run "+first {
			t.Errorf("behind a run: %q", got)
		}
		v := must[scheduler.RunView](t)(i.Run(ctx, first))
		if v.DurationMS < 2000 || v.DurationMS > 3500 || v.Reason != "" || v.Pending() {
			t.Errorf("going for some 3 s: %+v", v)
		}
		close(hold)
		if v := must[scheduler.RunView](t)(i.Wait(ctx, second)); v.Outcome != "succeeded" || v.Pending() {
			t.Errorf("got %+v", v)
		}
	})
}

func TestLapsedAndNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *", OnCrash: jobs.OnCrashRerun})
		i, ctx := c.inspector(), t.Context()
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		b.claim(ledger.Granted, ledger.Claim{Run: id, Pending: true})
		if got := said(t, i, id); got != "" {
			t.Errorf("granted: %q", got)
		}
		time.Sleep(6 * time.Second) // the lease is 5 s
		if got := said(t, i, id); got != "lease lapsed, not reaped yet" {
			t.Errorf("after its lease: %q", got)
		}
		second := ledger.Successor(id)
		b.settle(id, jobs.OutcomeLost, true)
		if v := must[scheduler.RunView](t)(i.Run(ctx, id)); v.NextAttempt != second {
			t.Errorf("pending, the next attempt is %q, want %s", v.NextAttempt, second)
		}
		b.claim(ledger.Granted, ledger.Claim{Run: second, Pending: true})
		second = b.handBack(second)
		if v := must[scheduler.RunView](t)(i.Wait(ctx, id)); v.NextAttempt != second {
			t.Errorf("handed back, the next attempt is %q, want %s", v.NextAttempt, second)
		}
		b.claim(ledger.Granted, ledger.Claim{Run: second, Pending: true})
		b.settle(second, jobs.OutcomeSucceeded, false)
		if v := must[scheduler.RunView](t)(i.Run(ctx, id)); v.NextAttempt != second {
			t.Errorf("ended, the next attempt is %q, want %s", v.NextAttempt, second)
		}
		if v := must[scheduler.RunView](t)(i.Run(ctx, second)); v.NextAttempt != "" {
			t.Errorf("after the last one comes %q", v.NextAttempt)
		}
	})
}

// A list goes on beside what it cannot read, says how much, and orders by what has come to pass.
func TestListLeavesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s, i, ctx := &sink{}, c.inspector(), t.Context()
		n := c.start("a", scheduler.Config{}, eachSecond("job", s), eachSecond("odd", s), jobs.Job{Name: "follower", After: "odd", Func: eachSecond("x", s).Func})
		time.Sleep(5*time.Second + 500*time.Millisecond)
		c.leave(n)
		far := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{At: time.Now().Add(time.Hour)}))
		must[scheduler.Cancellation](t)(i.Cancel(ctx, far, scheduler.CancelOptions{}))
		time.Sleep(time.Second)
		near := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		all := must[scheduler.RunList](t)(i.List(ctx, scheduler.RunFilter{Job: "job", Limit: 2}))
		if len(all.Runs) != 2 || all.Matched < 5 || all.Runs[0].Run != near || all.Runs[1].Run != far {
			t.Errorf("%d matched, the first are %+v", all.Matched, all.Runs)
		}
		if v := must[scheduler.JobView](t)(i.Job(ctx, "follower")); v.Last == nil || !time.Time(*v.Last).Equal(time.Time(*c.runs("follower")[0].Tick)) {
			t.Errorf("the last of a job that follows is %v", v.Last)
		}

		client := server.Client()
		defer client.Close()
		key := func(job string) string {
			return fmt.Sprintf("{escapement:%d}:history:%s", ledger.Partition(job, 16), job)
		}
		client.RPush(ctx, key("job"), "2|R|newer")
		if list := must[scheduler.RunList](t)(i.List(ctx, scheduler.RunFilter{})); list.LeftAlone != 1 {
			t.Errorf("%d left alone, want 1", list.LeftAlone)
		}
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.LeftAlone != 1 {
			t.Errorf("%d left alone, want 1", v.LeftAlone)
		}
		client.RPop(ctx, key("job"))
		client.Rename(ctx, key("follower"), key("follower")+":kept")
		client.Set(ctx, key("follower"), "x", 0)
		list, err := i.List(ctx, scheduler.RunFilter{})
		if err == nil || !strings.Contains(err.Error(), "history of job follower: ") || len(list.Runs) < 10 {
			t.Errorf("%d runs, %v", len(list.Runs), err)
		}
		views, err := i.Jobs(ctx)
		if err == nil || !strings.Contains(err.Error(), "history of job follower: ") || len(views) != 3 {
			t.Errorf("%d jobs, %v", len(views), err)
		}
		if v, err := i.Run(ctx, far); err != nil || v.Outcome != "cancelled" {
			t.Errorf("a run of another job: %+v, %v", v, err)
		}
		if _, err := i.Run(ctx, "nope"); err == nil || !strings.Contains(err.Error(), "history of job follower: ") {
			t.Errorf("one that may be there: %v", err)
		}
		client.Rename(ctx, key("follower")+":kept", key("follower"))
	})
}

func TestLastAfterARewind(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.inspector(), t.Context()
		n := c.start("a", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(8*time.Second + 500*time.Millisecond)
		c.leave(n)
		from := time.Time(*must[scheduler.JobView](t)(i.Job(ctx, "job")).HistoryFrom)
		tick := must[time.Time](t)(i.Rewind(ctx, "job", from.Add(3*time.Second)))
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Last == nil || !time.Time(*v.Last).Equal(tick.Add(-time.Second)) {
			t.Errorf("set back to %s, the last tick is %v", scheduler.Stamp(tick), v.Last)
		}
		_, err := i.Rewind(ctx, "job", tick)
		refused(t, err, scheduler.ErrRefused, "stands at "+scheduler.Stamp(tick).String(), "only goes back")
		must[time.Time](t)(i.Rewind(ctx, "job", from))
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Last != nil {
			t.Errorf("set back to its beginning, the last tick is %v", v.Last)
		}
	})
}

// An attempt that somebody asked for runs while its job is paused: a pause is not what it waits for.
func TestARerunDoesNotWaitForAPause(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.inspector(), t.Context()
		hold := make(chan struct{})
		job := jobs.Job{Name: "job", Schedule: "0 * * * *"}
		job.Func = func(ctx context.Context, run *jobs.Run) error {
			if run.Trigger() != jobs.TriggerManual {
				return nil
			}
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return nil
		}
		c.start("a", scheduler.Config{}, job)
		time.Sleep(time.Hour + time.Minute)
		ran := must[[]scheduler.RunView](t)(i.Runs(ctx, scheduler.RunFilter{Outcome: "succeeded"}))
		first := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		time.Sleep(3 * time.Second)
		if err := i.Pause(ctx, "job", scheduler.PauseOptions{Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		second := must[string](t)(i.Rerun(ctx, ran[0].Run))
		if got := said(t, i, second); got != "pending: job is held by run "+first {
			t.Errorf("behind a run, and paused: %q", got)
		}
		close(hold)
		if v := must[scheduler.RunView](t)(i.Wait(ctx, second)); v.Outcome != "succeeded" {
			t.Errorf("got %+v", v)
		}
	})
}
