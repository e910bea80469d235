package scheduler_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// books is a namespace whose nodes are played by the test.
type books struct {
	*ledger.Ledger
	t   *testing.T
	def ledger.Definition
	by  ledger.Claimer
}

func (b *books) now() int64 { return time.Now().UnixMilli() }

func keepBooks(t *testing.T, server *redistest.Embedded, j jobs.Job) *books {
	t.Helper()
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	l, err := ledger.Open(t.Context(), client, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(j.Definition())
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := j.ParsedSchedule()
	if err != nil {
		t.Fatal(err)
	}
	b := &books{Ledger: l, t: t, by: ledger.Claimer{ID: "node-1", Name: "n1"}}
	b.def = ledger.Definition{Job: j.Name, Digest: j.Definition().Digest(), Text: text}
	if schedule != nil {
		b.def.Cursor = schedule.Next(time.Now()).UnixMilli()
	}
	if d := must[[]ledger.Defined](t)(l.Define(t.Context(), b.now(), []ledger.Definition{b.def})); d[0].Word != "created" {
		t.Fatalf("got %+v", d)
	}
	return b
}

// claim asks for one run and wants the verdict.
func (b *books) claim(want ledger.Verdict, c ledger.Claim) {
	b.t.Helper()
	c.Job, c.Digest, c.TTL, c.Attempts = b.def.Job, b.def.Digest, 5*time.Second, 2
	if a := must[[]ledger.Answer](b.t)(b.Claim(b.t.Context(), b.by, b.now(), []ledger.Claim{c})); a[0].Verdict != want {
		b.t.Fatalf("claim of %s: %+v", c.Run, a[0])
	}
}

func (b *books) handBack(run string) string {
	b.t.Helper()
	fresh := ledger.Successor(run)
	got := must[[]ledger.Word](b.t)(b.Unclaim(b.t.Context(), []ledger.Return{{Job: b.def.Job, Run: run}}))
	if got[0] != ledger.Returned {
		b.t.Fatalf("hand back %s: %v", run, got)
	}
	return fresh
}

func (b *books) settle(run string, outcome jobs.Outcome, rerun bool) {
	b.t.Helper()
	r := ledger.Report{Job: b.def.Job, Run: run, Outcome: outcome, Started: b.now(), Ended: b.now(), Tries: 1, Output: []byte("by " + run), Rerun: rerun}
	if got := must[[]ledger.Word](b.t)(b.Settle(b.t.Context(), []ledger.Report{r})); got[0] != ledger.Settled {
		b.t.Fatalf("settle %s: %v", run, got)
	}
}

// awaited is what Wait says while the test plays the nodes.
func awaited(t *testing.T, i *scheduler.Inspector, id string) func() scheduler.RunView {
	got := make(chan scheduler.RunView, 1)
	go func() {
		v, err := i.Wait(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		got <- v
	}()
	time.Sleep(time.Second)
	return func() scheduler.RunView { return <-got }
}

func TestWaitFollows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *", OnCrash: jobs.OnCrashRerun})
		i, ctx := c.inspector(), t.Context()

		hand := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		wait := awaited(t, i, hand)
		b.claim(ledger.Granted, ledger.Claim{Run: hand, Pending: true})
		run := b.handBack(hand)
		if v := must[scheduler.RunView](t)(i.Run(ctx, hand)); v.Run != run || v.Reason != "pending: no living node holds the job" {
			t.Errorf("by the id asked for, while it waits: %+v", v)
		}
		time.Sleep(time.Second)
		b.claim(ledger.Granted, ledger.Claim{Run: run, Pending: true})
		run = b.handBack(run)
		time.Sleep(time.Second)
		b.claim(ledger.Granted, ledger.Claim{Run: run, Pending: true})
		second := ledger.Successor(run)
		b.settle(run, jobs.OutcomeLost, true)
		if v := wait(); v.Run != run || v.Outcome != "lost" || v.Attempt != 1 || v.Output != "by "+run {
			t.Errorf("a run by hand, handed back twice and then lost: %+v", v)
		}
		b.claim(ledger.Granted, ledger.Claim{Run: second, Pending: true})
		b.settle(second, jobs.OutcomeSucceeded, false)
		if v := must[scheduler.RunView](t)(i.Run(ctx, hand)); v.Run != run {
			t.Errorf("by the id asked for, later: %+v", v)
		}
		if v := must[scheduler.RunView](t)(i.Run(ctx, second)); v.Run != second || v.Attempt != 2 {
			t.Errorf("its rerun: %+v", v)
		}

		time.Sleep(time.Until(time.UnixMilli(b.def.Cursor)))
		tick := ledger.Claim{Run: "r1", From: b.def.Cursor, Tick: b.def.Cursor, Next: b.def.Cursor + 60_000}
		b.claim(ledger.Granted, tick)
		wait = awaited(t, i, "r1")
		run = b.handBack("r1")
		time.Sleep(time.Second)
		b.claim(ledger.Granted, ledger.Claim{Run: run, Pending: true})
		b.settle(run, jobs.OutcomeFailed, false)
		if v := wait(); v.Run != run || v.Outcome != "failed" {
			t.Errorf("a scheduled run, handed back: %+v", v)
		}
	})
}

// A run after another that is recorded instead of run has no row of its own.
func TestWaitForARunThatIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "follower", After: "job", StartWithin: 10 * time.Second})
		i, tick := c.inspector(), b.now()
		e := ledger.Event{Upstream: "job", Prev: tick, Next: tick + 60_000, Tick: tick, Until: tick, Count: 1, Outcome: jobs.OutcomeSucceeded, At: tick}
		if w := must[ledger.Word](t)(b.Relay(t.Context(), e, "follower")); w != ledger.RelayDone {
			t.Fatal(w)
		}
		wait := awaited(t, i, c.runs("follower")[0].Run)
		time.Sleep(10 * time.Second)
		b.claim(ledger.Passed, ledger.Claim{Run: c.runs("follower")[0].Run, Pending: true, Drop: ledger.ReasonStartWithin})
		if v := wait(); v.Outcome != "missed" || v.Reason != "start_within" || !time.Time(*v.Tick).Equal(time.UnixMilli(tick)) || v.Started != nil {
			t.Errorf("got %+v", v)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i := c.inspector()
		id := must[string](t)(i.Trigger(t.Context(), "job", scheduler.TriggerOptions{}))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := i.Wait(ctx, id)
		refused(t, err, context.DeadlineExceeded, id)
		_, err = i.Wait(t.Context(), "nope")
		refused(t, err, scheduler.ErrUnknownRun, "nope")
	})
}

// A tool's default is 200 rows; what nodes are configured to keep, it must not drop.
func TestOperatingDropsNoRows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, s, ctx := c.inspector(), &sink{}, t.Context()
		often := eachSecond("job", s)
		often.Schedule = "@every 100ms"
		n := c.start("a", scheduler.Config{HistoryKeep: 1000}, often)
		time.Sleep(30*time.Second + 50*time.Millisecond)
		v := must[scheduler.JobView](t)(i.Job(ctx, "job"))
		if v.TrimmedTo != nil || v.HistoryFrom == nil || v.Counts["succeeded"] < 295 {
			t.Errorf("nothing was dropped yet: %+v", v)
		}
		c.leave(n)
		before := len(c.runs("job"))
		for range 16 { // rows are dropped at every 16th
			id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
			must[scheduler.Cancellation](t)(i.Cancel(ctx, id, scheduler.CancelOptions{}))
		}
		if after := len(c.runs("job")); after != before+16 {
			t.Errorf("cancelled 16 times, and %d rows became %d", before, after)
		}
		for n := range 16 {
			must[time.Time](t)(i.Rewind(ctx, "job", time.Now().Add(-time.Second-time.Duration(n)*100*time.Millisecond)))
		}
		if after := len(c.runs("job")); after != before+32 {
			t.Errorf("set back 16 times, and %d rows became %d", before+16, after)
		}
		c.start("b", scheduler.Config{HistoryKeep: 100}, often)
		time.Sleep(5 * time.Second)
		v = must[scheduler.JobView](t)(i.Job(ctx, "job"))
		if v.TrimmedTo == nil || v.TrimmedTo.String() != v.HistoryFrom.String() {
			t.Errorf("rows were dropped: %s, %s", v.TrimmedTo, v.HistoryFrom)
		}
		_, err := i.Rewind(ctx, "job", time.Time(*v.TrimmedTo).Add(-time.Second))
		refused(t, err, scheduler.ErrRefused)
	})
}

// A job that nobody claims: its pause begins with a tick that was due before, and ends by the clock alone.
func TestPauseOfAJobThatStandsStill(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, ctx := c.inspector(), t.Context()
		time.Sleep(3*time.Minute + 30*time.Second)
		asked := time.Now()
		if err := i.Pause(ctx, "job", scheduler.PauseOptions{Reason: "x", Until: asked.Add(10 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Pause == nil || !time.Time(*v.Pause.Since).Equal(asked) {
			t.Errorf("paused since %+v", v.Pause)
		}
		time.Sleep(10 * time.Second)
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Paused || v.Pause != nil {
			t.Errorf("after its end: %+v", v)
		}
		first, last := b.def.Cursor, b.def.Cursor+2*60_000
		b.claim(ledger.Passed, ledger.Claim{Run: "r", From: first, Next: last + 60_000, Passes: []ledger.Pass{
			{Outcome: jobs.OutcomePaused, Reason: ledger.ReasonPaused, First: first, Last: last, Count: 3, Next: last + 60_000}}})
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.TrimmedTo != nil || v.Counts["paused"] != 3 {
			t.Errorf("one row of three ticks: %+v", v)
		}
	})
}

func TestPayloadThatIsNoJSON(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		id := must[string](t)(b.Trigger(t.Context(), "job", ledger.Trigger{Run: "by-hand", Payload: []byte("{\xff")}))
		v := must[scheduler.RunView](t)(c.inspector().Run(t.Context(), id))
		if text, err := json.Marshal(v); err != nil || !strings.Contains(string(text), `"payload":"{\ufffd"`) {
			t.Errorf("%s, %v", text, err)
		}
	})
}
