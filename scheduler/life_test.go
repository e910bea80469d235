package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// solo runs a test with one node, in virtual time, whose only job has no tick for a long time.
func solo(t *testing.T, f jobs.Func, test func(n *Node, j *job)) {
	t.Helper()
	soloOver(t, &redistest.Net{}, 5*time.Second, f, test)
}

// soloOver is solo with a network, which is whole when the test begins and ends, and the ttl of the job.
func soloOver(t *testing.T, net *redistest.Net, ttl time.Duration, f jobs.Func, test func(n *Node, j *job)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client := net.Client(server.Options())
		defer client.Close()
		reg := jobs.NewRegistry()
		reg.MustAdd(jobs.Job{Name: "job", Schedule: "0 0 1 1 *", TTL: ttl, Func: f, OnCrash: jobs.OnCrashRerun})
		n, err := New(client, reg, Config{Name: "a", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		for n.Ready() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		test(n, n.jobs[0])
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// take gets a grant of the job's next tick behind the engine's back.
func take(t *testing.T, n *Node, j *job, run string) grant {
	t.Helper()
	if !n.slots.take() {
		t.Fatal("no slot")
	}
	ctx, now := context.Background(), n.clock.now().UnixMilli()
	if _, err := n.ledger.Trigger(ctx, j.Name, ledger.Trigger{Run: run}); err != nil {
		t.Fatal(err)
	}
	g := grant{job: j, asked: time.Now(), slept: locking.Slept()}
	answers, err := n.ledger.Claim(ctx, ledger.Claimer{ID: n.id, Name: "a"}, now, []ledger.Claim{
		{Job: j.Name, Digest: j.digest, Run: run, TTL: j.TTL, Pending: true, Attempts: j.attempts()},
	})
	if err != nil || answers[0].Verdict != ledger.Granted {
		t.Fatalf("%v, %v", answers, err)
	}
	g.lease = answers[0].Run
	g.lease.Run, g.lease.Token = run, answers[0].Token
	return g
}

// A run whose end is wanted between its grant and its start: the function is not called. The drain's end
// is no such wish, then the run is handed back.
func TestEndedBeforeItsFunction(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(*runner) bool
		want   string // of the history, or of what is pending
	}{
		"cancelled":     {func(r *runner) bool { return r.cancelled(ledger.Cancel{Run: "run", Author: "anna", Reason: "why"}) }, "cancelled: cancelled by anna: why"},
		"in two words":  {func(r *runner) bool { return r.cancelled(ledger.Cancel{Run: "run", Author: "anna"}) }, "cancelled: cancelled by anna"},
		"replaced":      {func(r *runner) bool { return r.cancelled(ledger.Cancel{Run: "run"}) }, "cancelled: replaced"},
		"the first one": {func(r *runner) bool { return r.cancelRun("run", jobs.ErrReplaced) && r.cancelRun("run", ErrDraining) }, "cancelled: replaced"},
		"drain is over": {func(r *runner) bool { return r.cancelRun("run", ErrDraining) }, "pending: " + ledger.Successor("run")},
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			f := func(context.Context, *jobs.Run) error { called++; return nil }
			solo(t, f, func(n *Node, j *job) {
				l := n.runner.admit(take(t, n, j, "run"))
				if n.runner.cancelRun("another", errors.New("no")) {
					t.Error("a run that is not here was cancelled")
				}
				if !c.cancel(n.runner) {
					t.Error("the run is not known")
				}
				n.runner.begin(l, false)
				synctest.Wait() // the engine has the slot again
				if called > 0 || n.slots.used() != 0 || n.runner.cancelRun("run", jobs.ErrReplaced) {
					t.Errorf("called %d times, %d slots taken", called, n.slots.used())
				}
				if got := standing(t, n); got != c.want {
					t.Errorf("it is %s; want %s", got, c.want)
				}
			})
		})
	}
}

// standing says how the job's one run stands.
func standing(t *testing.T, n *Node) string {
	t.Helper()
	rows, _, err := n.ledger.History(context.Background(), []string{"job"})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows["job"]) > 0 {
		r := rows["job"][0]
		if r.Tries != 0 || r.Error != "" {
			t.Errorf("%d tries, error %q; want neither", r.Tries, r.Error)
		}
		return r.Outcome.String() + ": " + r.Reason
	}
	open, err := n.ledger.Open(context.Background(), "job")
	if err != nil || len(open) != 1 || !open[0].Pending() {
		t.Fatalf("%v, %v: want one pending run", open, err)
	}
	return "pending: " + open[0].Run
}

// Which ends ask for another attempt.
func TestReportsAskForAnotherAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		again bool
	}{
		"lost": {locking.ErrLeaseLost, true}, "drained": {ErrDraining, true}, "replaced": {jobs.ErrReplaced, false},
		"cancelled": {&cancellation{"anna", ""}, false}, "timed out": {jobs.ErrTimeout, false}, "failed": {nil, false},
	} {
		for _, policy := range []jobs.OnCrash{jobs.OnCrashRecord, jobs.OnCrashRerun} {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c.cause != nil {
				cancel(c.cause)
			}
			r := &runner{n: &Node{clock: newClock(time.Now, time.Minute)}}
			l := &life{g: grant{job: &job{Job: jobs.Job{OnCrash: policy}}, lease: ledger.Lease{Run: "run"}}, ctx: ctx, err: errors.New("half done")}
			if got, want := r.report(l).Rerun, c.again && policy == jobs.OnCrashRerun; got != want {
				t.Errorf("%s, on_crash %s: asks for another attempt: %v, want %v", name, policy, got, want)
			}
		}
	}
}

func TestClipKeepsRunes(t *testing.T) {
	for text, want := range map[string]string{"ääää": "ääää", "äääää": "ää...", "xääää": "xää...", "": ""} {
		if got := clip(text, 8); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		cause, err error
		how        jobs.Outcome
		reason     string
	}{
		"returned nil":                  {nil, nil, jobs.OutcomeSucceeded, ""},
		"returned nil, though cut off":  {locking.ErrLeaseLost, nil, jobs.OutcomeSucceeded, ""},
		"returned nil, though told":     {jobs.ErrReplaced, nil, jobs.OutcomeSucceeded, ""},
		"failed":                        {nil, failed, jobs.OutcomeFailed, ""},
		"failed for the lease":          {locking.ErrLeaseLost, failed, jobs.OutcomeLost, ""},
		"failed for the time":           {jobs.ErrTimeout, failed, jobs.OutcomeTimedOut, ""},
		"failed for a drain":            {ErrDraining, failed, jobs.OutcomeCancelled, "draining"},
		"failed for a newer tick":       {jobs.ErrReplaced, failed, jobs.OutcomeCancelled, "replaced"},
		"failed for an operator":        {&cancellation{"anna", "why"}, failed, jobs.OutcomeCancelled, "cancelled by anna: why"},
		"failed, its own context ended": {nil, context.Canceled, jobs.OutcomeFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c.cause != nil {
				cancel(c.cause)
			}
			if how, reason := outcome(ctx, c.err); how != c.how || reason != c.reason {
				t.Errorf("%s, %q; want %s, %q", how, reason, c.how, c.reason)
			}
		})
	}
}
