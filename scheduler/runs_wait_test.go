package scheduler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/ops"
)

// awaited is the result of WaitRun while the test plays the nodes.
func awaited(t *testing.T, i *ops.Client, id string) func() ops.RunView {
	got := make(chan ops.RunView, 1)
	go func() {
		v, err := i.WaitRun(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		got <- v
	}()
	time.Sleep(time.Second)
	return func() ops.RunView { return <-got }
}

func TestWaitFollows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b, i, ctx := c.keepBooks(minutely), c.ops(), t.Context()
		hand := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
		wait := awaited(t, i, hand)
		b.grant(hand)
		run := b.handBack(hand)
		if v := must[ops.RunView](t)(i.GetRun(ctx, hand)); v.Run != run || v.Reason != "pending: no living node holds the job" {
			t.Errorf("by the id asked for, while it waits: %+v", v)
		}
		time.Sleep(time.Second)
		b.grant(run)
		run = b.handBack(run)
		time.Sleep(time.Second)
		b.grant(run)
		second := ledger.NextAttemptID(run)
		b.settle(run, jobs.OutcomeLost, true)
		if v := wait(); v.Run != run || v.Outcome != jobs.OutcomeLost || v.Attempt != 1 || v.Output != "by "+run {
			t.Errorf("a run by hand, handed back twice and then lost: %+v", v)
		}
		b.grant(second)
		b.settle(second, jobs.OutcomeSucceeded, false)
		if v := must[ops.RunView](t)(i.GetRun(ctx, hand)); v.Run != run {
			t.Errorf("by the id asked for, later: %+v", v)
		}
		if v := must[ops.RunView](t)(i.GetRun(ctx, second)); v.Run != second || v.Attempt != 2 {
			t.Errorf("its rerun: %+v", v)
		}
	})
}

// Between two polls of a long wait, a scheduled run can be handed back more than once.
func TestWaitFollowsQuickHandBacks(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b := c.keepBooks(minutely)
		time.Sleep(time.Until(time.UnixMilli(b.def.Cursor)))
		b.claim(claim.Granted, claim.Claim{Run: "r1", From: b.def.Cursor, Tick: b.def.Cursor, Next: b.def.Cursor + 60_000})
		wait, run := awaited(t, c.ops(), "r1"), "r1"
		for range 30 {
			time.Sleep(time.Second)
			must[[]locking.RenewAnswer](t)(settle.Renew(t.Context(), b.Ledger, []locking.Renewal{{Name: "job", Owner: run, TTL: 5 * time.Second}}))
		}
		for _, pause := range []time.Duration{2 * time.Second, 0} {
			for range 3 {
				run = b.handBack(run)
				b.grant(run)
			}
			time.Sleep(pause)
		}
		b.settle(run, jobs.OutcomeSucceeded, false)
		if v := wait(); v.Run != run || v.Outcome != jobs.OutcomeSucceeded {
			t.Errorf("got %+v, want run %s", v, run)
		}
	})
}

// A run after another that is recorded instead of run has no row of its own.
func TestWaitForARunThatIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b := c.keepBooks(jobs.Job{Name: "follower", After: []string{"job"}, StartWithin: 10 * time.Second})
		i, tick := c.ops(), b.now()
		e := ledger.Event{Upstream: "job", Prev: tick, Next: tick + 60_000, Tick: tick, Until: tick, Count: 1, Outcome: jobs.OutcomeSucceeded, At: tick}
		if w := must[ledger.Status](t)(follow.Relay(t.Context(), b.Ledger, e, "follower")); w != follow.Done {
			t.Fatal(w)
		}
		wait := awaited(t, i, c.runs("follower")[0].Run)
		time.Sleep(10 * time.Second)
		b.claim(claim.RecordedOnly, claim.Claim{Run: c.runs("follower")[0].Run, Pending: true, Drop: ledger.ReasonStartWithin})
		if v := wait(); v.Outcome != jobs.OutcomeMissed || v.Reason != "start_within" || !v.Tick.Equal(time.UnixMilli(tick)) || !v.Started.IsZero() {
			t.Errorf("got %+v", v)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.keepBooks(minutely)
		i := c.ops()
		id := must[string](t)(i.Trigger(t.Context(), "job", ops.TriggerOptions{}))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := i.WaitRun(ctx, id)
		refused(t, err, context.DeadlineExceeded, id)
		_, err = i.WaitRun(t.Context(), "nope")
		refused(t, err, ops.ErrUnknownRun, "nope")
	})
}

// said is the reason of a run, from GetRun and from a list.
func said(t *testing.T, i *ops.Client, id string) string {
	t.Helper()
	v := must[ops.RunView](t)(i.GetRun(t.Context(), id))
	list := must[ops.Page[ops.RunView]](t)(i.ListRuns(t.Context(), ops.RunFilter{Outcome: "running"})).Items
	at := slices.IndexFunc(list, func(r ops.RunView) bool { return r.Run == v.Run })
	if at < 0 || list[at].Reason != v.Reason || list[at].Duration.Milliseconds() != v.Duration.Milliseconds() {
		t.Errorf("the list disagrees with %+v: %+v", v, list)
	}
	return v.Reason
}

// A waiting run's view names the cause of the wait, also without a node; from its end on, the view
// names the next attempt.
func TestWhatARunWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b, i, ctx := c.keepBooks(minutely), c.ops(), t.Context()
		due := time.Now().Add(time.Hour)
		later := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{At: due}))
		if got := said(t, i, later); got != "pending until "+ops.FormatTime(due) {
			t.Errorf("before its time: %q", got)
		}
		id := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
		if got := said(t, i, id); got != "pending: no living node holds the job" {
			t.Errorf("without a node: %q", got)
		}
		if got := len(must[ops.Page[ops.RunView]](t)(i.ListRuns(ctx, ops.RunFilter{Outcome: ops.OutcomePending})).Items); got != 2 {
			t.Errorf("%d are pending, want 2", got)
		}
		b.grant(id)
		if got := said(t, i, id); got != "" {
			t.Errorf("granted: %q", got)
		}
		time.Sleep(6 * time.Second) // the lease is 5 s
		if got := said(t, i, id); got != "lease lapsed, not reaped yet" {
			t.Errorf("after its lease: %q", got)
		}
		next := func(when, of, want string) {
			t.Helper()
			if v := must[ops.RunView](t)(i.GetRun(ctx, of)); v.NextAttempt != want {
				t.Errorf("%s, the next attempt is %q, want %q", when, v.NextAttempt, want)
			}
		}
		second := ledger.NextAttemptID(id)
		b.settle(id, jobs.OutcomeLost, true)
		next("pending", id, second)
		b.grant(second)
		second = b.handBack(second)
		next("handed back", id, second)
		b.grant(second)
		b.settle(second, jobs.OutcomeSucceeded, false)
		next("ended", id, second)
		next("of the last one", second, "")
	})
}

// A node is there, and one run has to wait for another, or for the end of a pause.
func TestPendingBehindARun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.ops(), t.Context()
		slow := lasting(8*time.Second, make(chan time.Time, 9), make(chan error, 9))
		slow.Schedule = "@yearly"
		c.start("a", scheduler.Config{}, slow)
		time.Sleep(time.Second)
		first := must[string](t)(i.Trigger(ctx, slow.Name, ops.TriggerOptions{}))
		time.Sleep(3 * time.Second)
		second := must[string](t)(i.Trigger(ctx, slow.Name, ops.TriggerOptions{}))
		if got := said(t, i, second); got != "pending: job is held by run "+first {
			t.Errorf("behind a run: %q", got)
		}
		v := must[ops.RunView](t)(i.GetRun(ctx, first))
		if v.Duration.Milliseconds() < 2000 || v.Duration.Milliseconds() > 3500 || v.Reason != "" || v.Pending() {
			t.Errorf("going for some 3 s: %+v", v)
		}
		if v := must[ops.RunView](t)(i.WaitRun(ctx, second)); v.Outcome != jobs.OutcomeSucceeded || v.Pending() {
			t.Errorf("got %+v", v)
		}
	})
}
