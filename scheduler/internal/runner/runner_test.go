package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/admission"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lanes are the lanes of a node, which record its runs' calls.
type lanes struct {
	keeper *locking.Keeper
	renew  locking.RenewAnswer // the answer to renewals

	mu         sync.Mutex
	begins     bool
	reports    []settle.Report
	handedBack []string // why runs were handed back
	kept       []string
	saved      map[string][]byte // by run
	failures   int               // how many calls of Saved fail first
}

func (l *lanes) Renew(_ context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answer := locking.Renewed
	l.note(func() { answer = l.renew })
	return slices.Repeat([]locking.RenewAnswer{answer}, len(batch)), nil
}

func (l *lanes) Hold(parent context.Context, _ int, g locking.Grant) *locking.Lease {
	return l.keeper.Hold(parent, g)
}
func (l *lanes) Begins(work.Grant) bool { return l.begins }

func (l *lanes) Settle(_ work.Grant, r settle.Report, then work.SettleListener) {
	l.note(func() { l.reports = append(l.reports, r) })
	then.Settled(r, settle.Settled, nil)
}

func (l *lanes) Tail(_ context.Context, _ int, tails []settle.Tail) error {
	for _, t := range tails {
		l.note(func() { l.kept = append(l.kept, string(t.Output)) })
	}
	return nil
}

func (l *lanes) Save(_ context.Context, run ledger.Run, _ string, data []byte) error {
	l.note(func() { l.saved[run.ID] = data })
	return nil
}

func (l *lanes) Saved(context.Context, ledger.Run) (by string, data []byte, err error) {
	l.note(func() {
		if l.failures--; l.failures >= 0 {
			err = locking.ErrUnreachable
			return
		}
		by, data = "earlier", l.saved["earlier"]
	})
	return by, data, err
}

func (l *lanes) HandBack(g work.Grant, _ func() bool) (over func()) {
	l.note(func() { l.handedBack = append(l.handedBack, g.HandBackReason) })
	return func() {}
}

func (l *lanes) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// node is a runner with its lanes.
type node struct {
	*Runner
	*lanes
	usable error
	log    strings.Builder
}

func (n *node) Write(p []byte) (int, error) {
	n.note(func() { n.log.Write(p) })
	return len(p), nil
}

func (n *node) clock() (err error) {
	n.note(func() { err = n.usable })
	return err
}

// inNode runs a test with a runner, in virtual time.
func inNode(t *testing.T, test func(t *testing.T, n *node)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &node{lanes: &lanes{begins: true, renew: locking.Renewed, saved: map[string][]byte{}}}
		n.keeper = locking.NewKeeper(n.lanes, locking.KeeperConfig{Logger: slog.New(slog.DiscardHandler)})
		log := slog.New(slog.NewTextHandler(n, nil))
		n.Runner = New(Config{
			Node: "n1", Values: t.Context(), Now: time.Now, Past: time.Now, Usable: n.clock, Active: &ActiveRuns{},
			Redis: n.lanes, Listener: nobody{}, Machine: well{}, Entry: admission.New(admission.Config{Node: "n1", Log: log}), Log: log,
		})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { n.Run(ctx) })
		all.Go(func() { n.KeepTails(ctx) })
		test(t, n)
		stop()
		all.Wait()
	})
}

// grant is a granted run of a job that calls f.
func grant(own jobs.Job, f func(ctx context.Context, r *jobs.Run) error) work.Grant {
	own.Name, own.TTL, own.Func = "a", 15*time.Second, f
	now := time.Now()
	return work.Grant{
		Job: &work.Job{Job: own}, FirstSent: now, FirstTTL: 5 * time.Second,
		Lease: ledger.Run{Job: "a", ID: "r1", Token: 7, Attempt: 1, Tick: now.UnixMilli(), Granted: now.UnixMilli(), Trigger: jobs.TriggerSchedule.String()},
	}
}

// report starts a run, calls during a second later, waits until the run is settled, and returns its report.
func (n *node) report(t *testing.T, g work.Grant, during func(n *node)) settle.Report {
	t.Helper()
	if !n.Start(g) {
		t.Fatal("the run is here already")
	}
	if during != nil {
		time.Sleep(time.Second)
		during(n)
	}
	n.wg.Wait()
	if len(n.reports) != 1 {
		t.Fatalf("%d reports, handed back: %q", len(n.reports), n.handedBack)
	}
	return n.reports[0]
}

// untilEnd is a function that goes on until its context ends.
func untilEnd(ctx context.Context, _ *jobs.Run) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestOutcomes: how a run ends, by its function's behaviour and its lease's.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *jobs.Run) error { return errors.New("no ink") }
	for name, c := range map[string]struct {
		job     jobs.Job
		do      func(ctx context.Context, r *jobs.Run) error
		during  func(n *node) // a second after the start
		outcome jobs.Outcome
		reason  string
		error   string
		tries   int
		rerun   bool
	}{
		"it succeeds":            {do: func(context.Context, *jobs.Run) error { return nil }, outcome: jobs.OutcomeSucceeded, tries: 1},
		"it fails":               {do: fails, outcome: jobs.OutcomeFailed, error: "no ink", tries: 1},
		"it fails each try":      {job: jobs.Job{Retry: jobs.Retry{Max: 2, Backoff: time.Second, MaxBackoff: time.Minute}}, do: fails, outcome: jobs.OutcomeFailed, error: "no ink; before: ", tries: 3},
		"it fails for good":      {job: jobs.Job{Retry: jobs.Retry{Max: 2}}, do: func(context.Context, *jobs.Run) error { return jobs.Permanent(errors.New("no")) }, outcome: jobs.OutcomeFailed, error: "no", tries: 1},
		"another node tries":     {job: jobs.Job{Retry: jobs.Retry{Max: 2, On: jobs.RetryOtherNode, Backoff: time.Second}}, do: fails, outcome: jobs.OutcomeFailed, error: "no ink", tries: 1, rerun: true},
		"it panics":              {do: func(context.Context, *jobs.Run) error { panic("boom") }, outcome: jobs.OutcomeFailed, error: "panic: boom\n\t", tries: 1},
		"it leaves":              {do: func(context.Context, *jobs.Run) error { runtime.Goexit(); return nil }, outcome: jobs.OutcomeFailed, error: errLeft.Error(), tries: 1},
		"its time is over":       {job: jobs.Job{Timeout: time.Minute}, do: untilEnd, outcome: jobs.OutcomeTimedOut, error: "context", tries: 1},
		"its try's time is over": {job: jobs.Job{Retry: jobs.Retry{Timeout: time.Second}}, do: untilEnd, outcome: jobs.OutcomeFailed, error: "context", tries: 1},
		"it is cancelled": {do: untilEnd, during: func(n *node) { n.Active.Cancelled(ledger.Cancel{Run: "r1", Author: "ann", Reason: "too long"}) },
			outcome: jobs.OutcomeCancelled, reason: "cancelled by ann: too long", error: "context", tries: 1},
		"it is replaced": {do: untilEnd, during: func(n *node) { n.Active.Cancelled(ledger.Cancel{Run: "r1"}) },
			outcome: jobs.OutcomeCancelled, reason: ledger.ReasonReplaced, error: "context", tries: 1},
		"it is lost": {job: jobs.Job{OnCrash: jobs.OnCrashRerun}, do: untilEnd, during: func(n *node) { n.note(func() { n.renew = locking.Gone }) },
			outcome: jobs.OutcomeLost, error: "context", tries: 1, rerun: true},
		"the node stops": {job: jobs.Job{OnCrash: jobs.OnCrashRerun}, do: untilEnd, during: func(n *node) { n.Refuse(); _ = n.Drain(time.Second) },
			outcome: jobs.OutcomeCancelled, reason: ledger.ReasonDraining, error: "context", tries: 1, rerun: true},
		"it stalls": {job: jobs.Job{StallAfter: time.Minute, OnStall: jobs.OnStallCancel}, do: untilEnd,
			outcome: jobs.OutcomeCancelled, reason: ledger.ReasonStalled, error: "context", tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inNode(t, func(t *testing.T, n *node) {
				r := n.report(t, grant(c.job, c.do), c.during)
				if r.Outcome != c.outcome || r.Reason != c.reason || !strings.HasPrefix(r.Error, c.error) || r.Tries != c.tries || r.Rerun != c.rerun {
					t.Errorf("%v, %q, %q after %d tries, rerun %t", r.Outcome, r.Reason, r.Error, r.Tries, r.Rerun)
				}
				if r.Outcome == jobs.OutcomeLost != (n.LeasesLost() == 1) || (r.Reason == ledger.ReasonStalled) != (n.Stalled() == 1) {
					t.Errorf("%d leases lost, %d stalls", n.LeasesLost(), n.Stalled())
				}
				if len(n.Active.Grants()) != 0 {
					t.Error("the run is still active")
				}
			})
		})
	}
}

// TestHandedBack: runs whose function is not called.
func TestHandedBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(n *node, g *work.Grant)
		after  func(n *node)
		why    string
	}{
		"the grant says why":        {func(_ *node, g *work.Grant) { g.HandBackReason = "no slot" }, nil, "no slot"},
		"the node drains":           {func(n *node, _ *work.Grant) { n.Refuse() }, nil, "the node drains"},
		"another epoch":             {func(n *node, _ *work.Grant) { n.begins = false }, nil, "the node drains"},
		"the lease is over":         {func(_ *node, g *work.Grant) { g.FirstSent = g.FirstSent.Add(-time.Minute) }, nil, "the node drains"},
		"the node drains before":    {func(_ *node, g *work.Grant) { g.StartAt = time.Now().Add(3 * time.Second).UnixMilli() }, func(n *node) { n.Refuse() }, "the node drains"},
		"its clock is not believed": {func(_ *node, g *work.Grant) { g.StartAt = time.Now().Add(3 * time.Second).UnixMilli() }, func(n *node) { n.note(func() { n.usable = errors.New("stepped") }) }, "the node drains"},
		"the machine cannot begin it": {func(_ *node, g *work.Grant) {
			g.Job.Func = func(context.Context, *jobs.Run) error { return jobs.NodeFault(errors.New("no memory")) }
		}, nil, "it could not begin on this machine: no memory"},
	} {
		t.Run(name, func(t *testing.T) {
			inNode(t, func(t *testing.T, n *node) {
				called := false
				g := grant(jobs.Job{}, func(context.Context, *jobs.Run) error { called = true; return nil })
				c.before(n, &g)
				if !n.Start(g) {
					t.Fatal("not started")
				}
				time.Sleep(time.Second)
				if c.after != nil {
					c.after(n)
				}
				n.wg.Wait()
				if len(n.handedBack) != 1 || !strings.HasPrefix(n.handedBack[0], c.why) || called || len(n.reports) != 0 {
					t.Errorf("handed back: %q, called: %t, reports: %v", n.handedBack, called, n.reports)
				}
			})
		})
	}
}

// TestGrantedAhead: a run begins when its tick is due.
func TestGrantedAhead(t *testing.T) {
	inNode(t, func(t *testing.T, n *node) {
		due := time.Now().Add(2 * time.Second)
		g := grant(jobs.Job{}, func(context.Context, *jobs.Run) error {
			if !time.Now().Equal(due) {
				t.Errorf("it begins at %s, due %s", time.Now(), due)
			}
			return nil
		})
		g.StartAt, g.Lease.Tick = due.UnixMilli(), due.UnixMilli()
		if r := n.report(t, g, nil); r.Outcome != jobs.OutcomeSucceeded {
			t.Error(r)
		}
	})
}

// TestStore: a second attempt goes on from the checkpoint of the first, reports its progress, and its output is kept while it goes on.
func TestStore(t *testing.T) {
	inNode(t, func(t *testing.T, n *node) {
		n.saved["earlier"], n.failures = []byte("half"), 2
		g := grant(jobs.Job{StallAfter: time.Minute}, func(ctx context.Context, r *jobs.Run) error {
			if got := r.Saved(); string(got) != "half" {
				t.Errorf("the checkpoint is %q", got)
			}
			fmt.Fprintln(r.Output(), "line")
			if left, margin := r.Lease().Left(), r.Lease().Margin(); left <= 0 || margin <= 0 {
				t.Error(left, margin)
			}
			r.Progress(1, 2, "")
			time.Sleep(50 * time.Second)
			if err := r.Save(ctx, []byte("whole")); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Second) // saved is progress
			if text := n.Active.Progress("r1"); !strings.Contains(text, "2") {
				t.Errorf("the progress is %q", text)
			}
			return nil
		})
		g.Lease.Attempt = 2
		r := n.report(t, g, nil)
		if r.Outcome != jobs.OutcomeSucceeded || r.Saved != "r1" || string(n.saved["r1"]) != "whole" || n.Stalled() != 0 || !slices.Contains(n.kept, "line\n") {
			t.Errorf("%+v, saved %q, tails %q, %d stalls", r, n.saved, n.kept, n.Stalled())
		}
		if n.StalledRuns(9) != nil || n.Active.Progress("r1") != "" {
			t.Error("a run that has ended stalls")
		}
	})
}

// TestDrain: a function that goes on after the drain has cancelled it is named.
func TestDrain(t *testing.T) {
	inNode(t, func(t *testing.T, n *node) {
		end := make(chan struct{})
		if !n.Start(grant(jobs.Job{}, func(context.Context, *jobs.Run) error { <-end; return nil })) {
			t.Fatal("not started")
		}
		n.Refuse()
		err := n.Drain(15 * time.Second)
		if err == nil || !strings.Contains(err.Error(), "a (r1)") {
			t.Error(err)
		}
		text := ""
		n.note(func() { text = n.log.String() })
		for _, want := range []string{"the node waits for its runs", "the drain time is over", "goes on though its context has ended"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %q:\n%s", want, text)
			}
		}
		close(end)
		n.wg.Wait()
		if out := string(n.reports[0].Output); !strings.Contains(out, "what it returned counts: succeeded") {
			t.Errorf("its output is %q", out)
		}
		if err := n.Drain(0); err != nil {
			t.Error(err)
		}
	})
}
