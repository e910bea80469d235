package scheduler_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/ops"
)

// books is a namespace whose nodes are played by the test.
type books struct {
	*ledger.Ledger
	t   *testing.T
	def define.Definition
	by  claim.Claimer
}

func (b *books) now() int64 { return time.Now().UnixMilli() }

// keepBooks registers a job in a namespace without nodes.
func (c *cluster) keepBooks(j jobs.Job) *books {
	c.t.Helper()
	t := c.t
	l := must[*ledger.Ledger](t)(ledger.Join(t.Context(), c.redis(), ledger.Config{Partitions: partitions}))
	text := must[[]byte](t)(json.Marshal(j.Definition()))
	b := &books{Ledger: l, t: t, by: claim.Claimer{ID: "node-1", Name: "n1"}}
	b.def = define.Definition{Job: j.Name, Digest: j.Definition().Digest(), Text: text}
	if schedule := must[*jobs.Schedule](t)(j.ParsedSchedule()); schedule != nil {
		b.def.Cursor = schedule.Next(time.Now()).UnixMilli()
	}
	if d := must[[]define.Defined](t)(define.Define(t.Context(), l, b.now(), []define.Definition{b.def})); d[0].Status != "created" {
		t.Fatalf("got %+v", d)
	}
	return b
}

// claim claims one run and wants the verdict.
func (b *books) claim(want claim.Verdict, c claim.Claim) {
	b.t.Helper()
	c.Job, c.Digest, c.TTL, c.Attempts = b.def.Job, b.def.Digest, 5*time.Second, 2
	if a := must[[]claim.Answer](b.t)(claim.Send(b.t.Context(), b.Ledger, b.by, b.now(), []claim.Claim{c})); a[0].Verdict != want {
		b.t.Fatalf("claim of %s: %+v", c.Run, a[0])
	}
}

// grant grants a pending run.
func (b *books) grant(run string) {
	b.t.Helper()
	b.claim(claim.Granted, claim.Claim{Run: run, Pending: true})
}

// miss records all ticks, one a minute, from one up to another as missed.
func (b *books) miss(from, last int64) {
	b.t.Helper()
	next := last + 60_000
	b.claim(claim.RecordedOnly, claim.Claim{Run: "r", From: from, Next: next, Skipped: []ledger.SkippedRange{
		{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: from, Last: last, Count: (last-from)/60_000 + 1, Next: next}}})
}

func (b *books) handBack(run string) (fresh string) {
	b.t.Helper()
	if got := must[[]ledger.Status](b.t)(settle.Unclaim(b.t.Context(), b.Ledger, []settle.Return{{Job: b.def.Job, Run: run}})); got[0] != settle.Returned {
		b.t.Fatalf("hand back %s: %v", run, got)
	}
	return ledger.NextAttemptID(run)
}

func (b *books) settle(run string, outcome jobs.Outcome, rerun bool) {
	b.t.Helper()
	r := settle.Report{Job: b.def.Job, Run: run, Outcome: outcome, Started: b.now(), Ended: b.now(), Tries: 1, Output: []byte("by " + run), Rerun: rerun}
	if got := must[[]ledger.Status](b.t)(settle.Settle(b.t.Context(), b.Ledger, []settle.Report{r})); got[0] != settle.Settled {
		b.t.Fatalf("settle %s: %v", run, got)
	}
}

// minutely is a job for books.
var minutely = jobs.Job{Name: "job", Schedule: "* * * * *", OnCrash: jobs.OnCrashRerun}

// A tool's default is 200 rows; what nodes are configured to keep, it must not drop.
func TestOperatingDropsNoRows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, s, ctx := c.ops(), &sink{}, t.Context()
		often := eachSecond("job", s)
		often.Schedule = "@every 100ms"
		n := c.start("a", scheduler.Config{HistoryKeep: 1000}, often)
		time.Sleep(30*time.Second + 50*time.Millisecond)
		if v := c.job("job"); !v.TrimmedTo.IsZero() || v.HistoryFrom.IsZero() || v.Counts[jobs.OutcomeSucceeded] < 295 {
			t.Errorf("nothing was dropped yet: %+v", v)
		}
		c.leave(n)
		before := len(c.runs("job"))
		for n := range 16 { // rows are dropped at every 16th
			id := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
			must[ops.Cancellation](t)(i.Cancel(ctx, id, ops.CancelOptions{}))
			must[time.Time](t)(i.Rewind(ctx, "job", time.Now().Add(-time.Second-time.Duration(n)*100*time.Millisecond)))
		}
		if after := len(c.runs("job")); after != before+32 {
			t.Errorf("cancelled and set back 16 times, and %d rows became %d", before, after)
		}
		c.start("b", scheduler.Config{HistoryKeep: 100}, often)
		time.Sleep(5 * time.Second)
		v := c.job("job")
		if v.TrimmedTo.IsZero() || v.TrimmedTo.String() != v.HistoryFrom.String() {
			t.Errorf("rows were dropped: %s, %s", v.TrimmedTo, v.HistoryFrom)
		}
		_, err := i.Rewind(ctx, "job", v.TrimmedTo.Add(-time.Second))
		refused(t, err, ops.ErrRefused)
	})
}

// A list leaves out unreadable records, returns their number, and orders the rest by the latest
// event.
func TestListLeavesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, i, ctx := &sink{}, c.ops(), t.Context()
		n := c.start("a", scheduler.Config{}, eachSecond("job", s), eachSecond("odd", s), jobs.Job{Name: "follower", After: []string{"odd"}, Func: eachSecond("x", s).Func})
		time.Sleep(5*time.Second + 500*time.Millisecond)
		c.leave(n)
		far := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{At: time.Now().Add(time.Hour)}))
		must[ops.Cancellation](t)(i.Cancel(ctx, far, ops.CancelOptions{}))
		time.Sleep(time.Second)
		near := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
		all := must[ops.Page[ops.RunView]](t)(i.ListRuns(ctx, ops.RunFilter{Job: "job", Limit: 2}))
		if len(all.Items) != 2 || all.Next == "" || all.Items[0].Run != near || all.Items[1].Run != far {
			t.Errorf("the first are %+v", all)
		}
		if v := c.job("follower"); v.Last.IsZero() || !v.Last.Equal(c.runs("follower")[0].Tick) {
			t.Errorf("the last of a job that follows is %v", v.Last)
		}

		client := c.redis()
		key := func(job string) string { return keyOf(job, "history:"+job) }
		client.RPush(ctx, key("job"), "2|R|newer")
		if list := must[ops.Page[ops.RunView]](t)(i.ListRuns(ctx, ops.RunFilter{})); list.UnknownFormat != 1 || c.job("job").UnknownFormat != 1 {
			t.Errorf("%d left alone, of the job %d; want 1", list.UnknownFormat, c.job("job").UnknownFormat)
		}
		client.RPop(ctx, key("job"))
		client.Rename(ctx, key("follower"), key("follower")+":kept")
		client.Set(ctx, key("follower"), "x", 0)
		unread := func(what string, err error, shown, least int) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "history of job follower: ") || shown < least {
				t.Errorf("%s: %d shown, %v", what, shown, err)
			}
		}
		list, err := i.ListRuns(ctx, ops.RunFilter{})
		unread("runs", err, len(list.Items), 10)
		views, err := i.ListJobs(ctx, ops.JobFilter{})
		unread("jobs", err, len(views.Items), 3)
		_, err = i.GetRun(ctx, "nope")
		unread("a run that may be there", err, 0, 0)
		if v := must[ops.RunView](t)(i.GetRun(ctx, far)); v.Outcome != jobs.OutcomeCancelled {
			t.Errorf("a run of another job: %+v", v)
		}
		client.Rename(ctx, key("follower")+":kept", key("follower"))
	})
}

// TestLeases follows a run's lease: none while it is pending, then less and less, and none when it
// is settled.
func TestLeases(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b, i, ctx := c.keepBooks(minutely), c.ops(), t.Context()
		id := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{}))
		if got := must[ops.Page[ops.LockView]](t)(i.ListLocks(ctx, ops.LockFilter{})); got.Items == nil || len(got.Items) != 0 {
			t.Errorf("a pending run has a lease: %+v", got)
		}
		b.grant(id)
		all := must[ops.Page[ops.LockView]](t)(i.ListLocks(ctx, ops.LockFilter{})).Items
		for _, got := range append(all, must[ops.LockView](t)(i.GetLock(ctx, "job"))) {
			if len(all) != 1 || got.Name != "job" || got.Kind != ops.RunKind || got.Run != id || got.Node != "n1" || got.TTL != 5*time.Second || got.Token == 0 {
				t.Errorf("got %+v", got)
			}
		}
		time.Sleep(6 * time.Second)
		if got := must[ops.LockView](t)(i.GetLock(ctx, "job")); got.Run != id || got.TTL != 0 {
			t.Errorf("lapsed, and nobody reaped it: %+v", got)
		}
		b.settle(id, jobs.OutcomeSucceeded, false)
		for _, name := range []string{"job", "nope"} {
			refused(t, second(i.GetLock(ctx, name)), ops.ErrUnknownLock, name)
		}
	})
}
