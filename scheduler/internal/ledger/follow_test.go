package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// TestFollow: a tick that succeeded is run by the follower, once; any other end, and a tick that
// does not run, is recorded once; and so on down the chain.
func TestFollow(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.pass(t, 20*time.Second)
		r.runOne(t, "a", 1)
		e := r.events(t)
		if len(e) != 1 || e[0].Upstream != "a" || e[0].Tick != noon+1000 || e[0].Outcome != jobs.OutcomeSucceeded || e[0].At != r.now || !slices.Equal(e[0].Followers, []string{"b"}) {
			t.Fatalf("events %+v", e)
		}
		ended := r.now
		r.pass(t, time.Second)
		r.relayAll(t)
		l := r.open(t, "b")
		if l == nil || l.Tick != noon+1000 || l.Trigger != "after" || l.Attempt != 1 || l.Granted != ended || l.Prev != 0 || l.Next != 0 || l.Request != "" {
			t.Fatalf("pending: %+v", l)
		}
		r.complete(t, jobs.OutcomeSucceeded, after(0, "b", l.ID))
		r.relayAll(t)
		if l = r.open(t, "c"); l == nil || l.Tick != noon+1000 {
			t.Fatalf("pending: %+v", l)
		}
		r.complete(t, jobs.OutcomeSucceeded, after(0, "c", l.ID))

		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "a-2", 2))
		r.want(t, claim.RecordedOnly, passing("a", "r", 0, late(3, 5)))
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"})) // a run of no tick
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", "t"))
		r.relayAll(t)
		if r.open(t, "b") != nil || r.open(t, "c") != nil {
			t.Error("something is pending")
		}
		r.tale(t, "b", "succeeded 1", "skipped 2-2 x1 upstream failed", "skipped 3-5 x3 upstream missed")
		r.tale(t, "c", "succeeded 1", "skipped 2-5 x4 upstream skipped")
		want := map[jobs.Outcome]int64{jobs.OutcomeSucceeded: 1, jobs.OutcomeSkipped: 4}
		for _, job := range []string{"b", "c"} {
			if e := r.entry(t, job); fmt.Sprint(e.Counts) != fmt.Sprint(want) || e.Cursor != 0 || e.Base != 0 {
				t.Errorf("the entry of %s is %+v", job, e)
			}
		}
		r.sound(t)
	})
}

// A repeated tick sends another event: a success after a failure runs, and a tick that has run is
// not recorded as skipped, nor run a second time. An attempt that is followed by another is no end.
func TestFollowRepeatedTicks(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.want(t, claim.Granted, attempts(2, tickClaim("a", "r1", 1)))
		r.reap(t, "a", "r1")
		if e := r.events(t); len(e) != 0 {
			t.Fatalf("told of an attempt that is repeated: %+v", e)
		}
		run := ledger.NextAttemptID("r1")
		r.complete(t, jobs.OutcomeFailed, attempts(2, pendingClaim("a", run)))
		r.relayAll(t)
		again := func(outcome jobs.Outcome) {
			t.Helper()
			run = must(operate.Rerun(t.Context(), r.led, "a", run))
			r.want(t, claim.Granted, pendingClaim("a", run))
			r.settle(t, settle.Settled, "a", run, outcome)
			r.relayAll(t)
		}
		again(jobs.OutcomeFailed)
		again(jobs.OutcomeSucceeded)
		l := r.open(t, "b")
		if l == nil {
			t.Fatal("the success was not told")
		}
		r.want(t, claim.Granted, after(0, "b", l.ID))
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "b", Run: l.ID}}))
		r.pass(t, 2*follow.RelayedFor) // the follower has forgotten the event
		again(jobs.OutcomeSucceeded)
		again(jobs.OutcomeFailed)
		r.want(t, claim.Granted, after(0, "b", ledger.NextAttemptID(l.ID)))
		again(jobs.OutcomeSucceeded)
		r.settle(t, settle.Settled, "b", ledger.NextAttemptID(l.ID), jobs.OutcomeSucceeded)
		r.pass(t, 2*follow.RelayedFor)
		again(jobs.OutcomeSucceeded)
		again(jobs.OutcomeFailed)
		r.tale(t, "b", "skipped 1-1 x1 upstream failed", "succeeded 1")
		if l := r.open(t, "b"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		r.sound(t)
	})
}

// A tick that has succeeded stays a success, whatever becomes of an operator's attempt of it:
// followers get no event of the attempt. A follower may still wait for the success, until a node
// can run it, or start to follow only now.
func TestFollowARerunOfASuccess(t *testing.T) {
	back := func(r *rig, run string) {
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: run}}))
	}
	cancel := func(r *rig, run string) { must(operate.Cancel(t.Context(), r.led, "a", run, "ann", "")) }
	for how, end := range map[string]func(t *testing.T, r *rig, run string){
		"failed":                            func(t *testing.T, r *rig, run string) { r.settle(t, settle.Settled, "a", run, jobs.OutcomeFailed) },
		"crashed":                           func(t *testing.T, r *rig, run string) { r.reap(t, "a", run) },
		"cancelled once it was handed back": func(t *testing.T, r *rig, run string) { back(r, run); cancel(r, ledger.NextAttemptID(run)) },
		"handed back once it was cancelled": func(t *testing.T, r *rig, run string) { cancel(r, run); back(r, run) },
	} {
		t.Run(how, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.chainOf(t, "a", "b")
				r.pass(t, time.Minute)
				r.runOne(t, "a", 1)
				success := r.events(t)[0]
				success.Holders = []string{}
				if got := must(follow.Relay(t.Context(), r.led, success, "b")); got != follow.Unheld {
					t.Fatalf("told while nobody holds it: %s", got)
				}
				run := must(operate.Rerun(t.Context(), r.led, "a", "a-1"))
				r.want(t, claim.Granted, pendingClaim("a", run))
				end(t, r, run)
				if events := r.events(t); len(events) != 1 {
					t.Errorf("the followers are told %+v", events)
				}
				success.Unheld = true
				if got := must(follow.Relay(t.Context(), r.led, success, "b")); got != follow.Done {
					t.Fatalf("told after half a minute: %s", got)
				}
				r.tale(t, "b", "missed 1-1 x1 late")
				r.sound(t)
			})
		})
	}
}

// A job that once followed another one, and wants nodes with a label whose name is after and whose
// value is that job's name, follows it no more.
func TestFollowIsNoLabel(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		def := jobs.Job{Name: "b", Schedule: "@every 1h", Labels: map[string]string{"after": "a"}, Shards: 2, Params: []string{`"after":"a"`, `","after":"a`}}
		text := must(json.Marshal(def.Definition()))
		if !strings.Contains(string(text), `"after":"a"`) {
			t.Fatalf("the definition is %s", text)
		}
		r.pass(t, time.Minute)
		if got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "b", Digest: "d-label", WasDigest: "d-after-b", Cursor: noon + 3600_000, Text: text}})); got[0].Status != "replaced" {
			t.Fatalf("define: %s", got[0].Status)
		}
		r.pass(t, time.Second)
		r.runOne(t, "a", 1)
		if got := must(follow.Relay(t.Context(), r.led, r.events(t)[0], "b")); got != follow.Unrelated {
			t.Errorf("told: %s", got)
		}
		if l := r.open(t, "b"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
	})
}

// A rewound tick sends events as if it had not succeeded before, also by a later attempt: a new
// follower has had no other event.
func TestFollowARewoundTick(t *testing.T) {
	for name, crash := range map[string]bool{"fails": false, "crashes, then fails": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.runOne(t, "a", 1)
				r.follower(t, "a", "b")
				must(operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 2000, To: noon + 1000}))
				r.want(t, claim.Granted, attempts(3, tickClaim("a", "again", 1)))
				run := "again"
				if crash {
					r.reap(t, "a", run)
					run = ledger.NextAttemptID(run)
					r.want(t, claim.Granted, attempts(3, pendingClaim("a", run)))
				}
				r.settle(t, settle.Settled, "a", run, jobs.OutcomeFailed)
				r.relayAll(t)
				r.tale(t, "b", "skipped 1-1 x1 upstream failed")
				r.sound(t)
			})
		})
	}
}

// No living node holds the follower: a tick that succeeded is missed, and stays so if a node comes
// later. A tick that was skipped, for its upstream had failed, stays so when an operator's attempt
// succeeds.
func TestFollowerThatNobodyHolds(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.pass(t, time.Minute)
		relay := func() {
			t.Helper()
			for _, unheld := range []bool{true, true, false} {
				e := r.events(t)[0]
				if e.Unheld = unheld; must(follow.Relay(t.Context(), r.led, e, "b")) != follow.Done {
					t.Fatal("not told")
				}
			}
			r.relayAll(t)
		}
		r.runOne(t, "a", 1)
		relay()
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "a-2", 2))
		r.relayAll(t)
		again := must(operate.Rerun(t.Context(), r.led, "a", "a-2"))
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", again))
		relay()
		if l := r.open(t, "b"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		r.tale(t, "b", "missed 1-1 x1 late", "skipped 2-2 x1 upstream failed")
		r.tale(t, "c", "skipped 1-1 x1 upstream missed", "skipped 2-2 x1 upstream skipped")
		r.sound(t)
	})
}

// A tick that was handed back never began: it may come too late for start_within, and the followers
// get an event.
func TestFollowATickHandedBackTooLate(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, claim.Granted, tickClaim("a", "a-1", 1))
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: "a-1"}}))
		r.pass(t, time.Minute)
		c := pendingClaim("a", ledger.NextAttemptID("a-1"))
		c.Drop = ledger.ReasonStartWithin
		if a := r.want(t, claim.RecordedOnly, c); a.Detail != "missed,start_within" {
			t.Errorf("%+v", a)
		}
		if e := r.events(t); len(e) != 1 || e[0].Tick != noon+1000 || e[0].Outcome != jobs.OutcomeMissed {
			t.Errorf("told: %+v", e)
		}
		r.want(t, claim.Granted, tickClaim("a", "a-2", 2))
		r.sound(t)
	})
}
