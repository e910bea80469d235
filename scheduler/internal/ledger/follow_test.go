package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
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

// joins makes a job that follows several jobs.
func (r *rig) joins(t *testing.T, name, when string, upstreams ...string) {
	t.Helper()
	list := must(json.Marshal(upstreams))
	must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: name, Digest: "d-after-" + name, Text: fmt.Appendf(nil, `{"name":%q,"after":%s,"when":%q}`, name, list, when)}}))
	for _, up := range upstreams {
		if err := follow.Follow(t.Context(), r.led, 0, up, name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJoin: a job that follows several runs once for a tick, when all of them have ended it as it
// wants.
func TestJoin(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		for _, when := range []string{"succeeded", "failed", "any"} {
			r.joins(t, when, when, "a", "b")
		}
		r.pass(t, time.Minute)
		end := func(job string, second int64, outcome jobs.Outcome) {
			t.Helper()
			r.complete(t, outcome, tickClaim(job, fmt.Sprintf("%s-%d", job, second), second))
			r.relayAll(t)
		}
		pending := func(want ...string) {
			t.Helper()
			var got []string
			for _, when := range []string{"succeeded", "failed", "any"} {
				if l := r.open(t, when); l != nil {
					got = append(got, when)
					r.complete(t, jobs.OutcomeSucceeded, after(0, when, l.ID))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("pending are %q, want %q", got, want)
			}
		}
		end("a", 1, jobs.OutcomeSucceeded)
		pending()
		end("b", 1, jobs.OutcomeSucceeded)
		pending("succeeded", "any")

		end("b", 2, jobs.OutcomeSucceeded)
		end("a", 2, jobs.OutcomeTimedOut)
		pending("failed", "any")

		end("a", 3, jobs.OutcomeFailed) // known at once not to run
		pending()
		r.tale(t, "succeeded", "succeeded 1", "skipped 2-2 x1 upstream timed_out", "skipped 3-3 x1 upstream failed")
	})
}

// TestJoinOfARerun: a rerun that succeeds makes up for a failure, as long as the join is
// remembered.
func TestJoinOfARerun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "a-1", 1))
		r.relayAll(t)
		r.runOne(t, "b", 1)
		r.relayAll(t)
		r.tale(t, "j", "skipped 1-1 x1 upstream failed")
		run := must(operate.Rerun(t.Context(), r.led, "a", "a-1"))
		r.want(t, claim.Granted, pendingClaim("a", run))
		r.settle(t, settle.Settled, "a", run, jobs.OutcomeSucceeded)
		r.relayAll(t)
		l := r.open(t, "j")
		if l == nil || l.Tick != noon+1000 {
			t.Fatalf("pending: %+v", l)
		}
		r.complete(t, jobs.OutcomeSucceeded, after(0, "j", l.ID))
		r.relayAll(t)
		r.tale(t, "j", "skipped 1-1 x1 upstream failed", "succeeded 1")
	})
}

// TestJoinTakesTheNewestResult: a rerun that succeeds brings its own result, or none.
func TestJoinTakesTheNewestResult(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		for second, c := range map[int64]struct{ first, then, want string }{1: {"1", "", ""}, 2: {"1", "2", `{"a":2}`}, 3: {"", "2", `{"a":2}`}} {
			e := ledger.Event{Upstream: "a", Tick: noon + second*1000, Until: noon + second*1000, Count: 1, Outcome: jobs.OutcomeSucceeded, At: r.now}
			for _, result := range []string{c.first, c.then} {
				e.Result = []byte(result)
				must(follow.Relay(t.Context(), r.led, e, "j"))
			}
			e.Upstream, e.Result = "b", nil
			must(follow.Relay(t.Context(), r.led, e, "j"))
			l := r.open(t, "j")
			if l == nil || string(l.Payload) != c.want {
				t.Errorf("after %q and %q: %+v, want the payload %q", c.first, c.then, l, c.want)
			}
			r.complete(t, jobs.OutcomeSucceeded, after(0, "j", l.ID))
		}
	})
}

// TestJoinTakesTicksOneByOne: ticks that an upstream did not run reach a join one by one; of too
// many the older ones are recorded, unless they have a row.
func TestJoinTakesTicksOneByOne(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		r.want(t, claim.RecordedOnly, passing("a", "r", 0, late(1, 4)))
		e := r.events(t)[0]
		if got := must(follow.Relay(t.Context(), r.led, e, "j")); got != follow.Several {
			t.Fatalf("four at once: %s", got)
		}
		one := e
		one.Tick, one.Until, one.Count, one.Next = noon+2000, noon+2000, 1, noon+3000
		at := func(second int64) int64 { return noon + second*1000 }
		rest := e
		rest.Rest = true
		for range 2 { // another caller has delivered 2 meanwhile
			if got := must(follow.Relay(t.Context(), r.led, one, "j")); got != follow.Done {
				t.Fatalf("one: %s", got)
			}
			rest.Gaps = []ledger.Gap{{First: at(1), Last: at(4), Next: at(5), Count: 4}}
			if got := must(follow.Relay(t.Context(), r.led, rest, "j")); got != follow.Several {
				t.Fatalf("a gap with a row in it: %s", got)
			}
		}
		rest.Gaps = []ledger.Gap{{First: at(1), Last: at(1), Next: at(2), Count: 1}, {First: at(3), Last: at(4), Next: at(5), Count: 2}}
		if got := must(follow.Relay(t.Context(), r.led, rest, "j")); got != follow.Done {
			t.Fatalf("the rest: %s", got)
		}
		if got := must(follow.Relay(t.Context(), r.led, rest, "j")); got != follow.Several {
			t.Fatalf("the rest again: %s", got)
		}
		r.tale(t, "j", "skipped 2-2 x1 upstream missed", "skipped 1-1 x1 upstream missed", "skipped 3-4 x2 upstream missed")
		if n := r.entry(t, "j").Counts[jobs.OutcomeSkipped]; n != 4 {
			t.Errorf("%d are counted", n)
		}
	})
}

// TestGapWithARun: ticks among which a run of the follower lies that has not ended are not recorded
// as skipped; those beside it are.
func TestGapWithARun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		at := func(second int64) int64 { return noon + second*1000 }
		for _, name := range []string{"a", "b"} {
			must(follow.Relay(t.Context(), r.led, ledger.Event{Upstream: name, Tick: at(2), Until: at(2), Count: 1, Outcome: jobs.OutcomeSucceeded, At: r.now}, "j"))
		}
		run := r.open(t, "j")
		rest := ledger.Event{Upstream: "b", Tick: at(1), Until: at(4), Next: at(5), Count: 4, Outcome: jobs.OutcomeMissed, At: r.now, Rest: true}
		for _, pending := range []bool{true, false} {
			rest.Gaps = []ledger.Gap{{First: at(1), Last: at(3), Next: at(4), Count: 3}}
			if got := must(follow.Relay(t.Context(), r.led, rest, "j")); got != follow.Several {
				t.Errorf("pending %t: %s", pending, got)
			}
			if pending {
				r.want(t, claim.Granted, after(0, "j", run.ID))
			}
		}
		rest.Gaps = []ledger.Gap{{First: at(1), Last: at(1), Next: at(2), Count: 1}, {First: at(3), Last: at(4), Next: at(5), Count: 2}}
		if got := must(follow.Relay(t.Context(), r.led, rest, "j")); got != follow.Done {
			t.Error(got)
		}
		r.settle(t, settle.Settled, "j", run.ID, jobs.OutcomeSucceeded)
		r.tale(t, "j", "skipped 1-1 x1 upstream missed", "skipped 3-4 x2 upstream missed", "succeeded 2")
	})
}

// TestJoinsAreBounded: a job remembers 1,000 ticks; a tick that is given up before all upstreams
// have ended it is recorded as missed.
func TestJoinsAreBounded(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "any", "a", "b")
		r.follower(t, "j", "last")
		r.pass(t, time.Minute)
		e := ledger.Event{Upstream: "a", Outcome: jobs.OutcomeSucceeded, Count: 1, At: r.now, Result: []byte(`1`)}
		for i := range int64(1002) {
			e.Tick = noon + 1000*(i+1)
			e.Until = e.Tick
			if got := must(follow.Relay(t.Context(), r.led, e, "j")); got != follow.Done {
				t.Fatal(got)
			}
		}
		r.tale(t, "j", "missed 1-1 x1 upstream", "missed 2-2 x1 upstream")
		if e := r.events(t); len(e) != 2 || e[1].Outcome != jobs.OutcomeMissed || e[1].Upstream != "j" {
			t.Errorf("its follower is told %+v", e)
		}
		fields := must(r.client.HGetAll(t.Context(), r.led.Keys[0].Joins).Result())
		if len(fields) != 1+2*1000 {
			t.Errorf("%d fields, of 1,000 ticks with a result", len(fields))
		}
		// All is old by the time of the next.
		r.pass(t, r.led.Config.KeepFor+time.Minute)
		e.Tick, e.Until = noon+2_000_000, noon+2_000_000
		must(follow.Relay(t.Context(), r.led, e, "j"))
		if n := must(r.client.HLen(t.Context(), r.led.Keys[0].Joins).Result()); n != 3 {
			t.Errorf("%d fields are left of one tick", n)
		}
	})
}

// TestJoinsAreGivenUp: a tick that not all upstreams have ended is recorded as missed when it is
// old, also when no other tick comes.
func TestJoinsAreGivenUp(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.follower(t, "j", "last")
		r.pass(t, time.Minute)
		for second := range int64(3) {
			at := noon + 1000*(second+1)
			e := ledger.Event{Upstream: "a", Outcome: jobs.OutcomeSucceeded, Count: 1, At: r.now, Tick: at, Until: at, Result: []byte(`1`)}
			must(follow.Relay(t.Context(), r.led, e, "j"))
			if second == 1 {
				r.pass(t, r.led.Config.KeepFor-time.Minute)
			}
		}
		for range 2 {
			must(0, follow.GiveUpJoins(t.Context(), r.led, "j"))
			r.tale(t, "j")
		}
		r.pass(t, 2*time.Minute)
		for range 2 {
			must(0, follow.GiveUpJoins(t.Context(), r.led, "j"))
			r.tale(t, "j", "missed 1-1 x1 upstream", "missed 2-2 x1 upstream")
		}
		if e := r.events(t); len(e) != 2 || e[0].Outcome != jobs.OutcomeMissed || e[0].Upstream != "j" {
			t.Errorf("its follower is told %+v", e)
		}
		joins := r.led.Keys[0].Joins
		if n := must(r.client.HLen(t.Context(), joins).Result()); n != 3 || r.entry(t, "j").Counts[jobs.OutcomeMissed] != 2 {
			t.Errorf("%d fields are left of one tick: %+v", n, r.entry(t, "j"))
		}
		r.pass(t, r.led.Config.KeepFor)
		must(0, follow.GiveUpJoins(t.Context(), r.led, "j"))
		must(0, follow.GiveUpJoins(t.Context(), r.led, "nobody"))
		if n := must(r.client.HLen(t.Context(), joins).Result()); n != 0 {
			t.Errorf("%d fields are left of nothing", n)
		}
	})
}

// TestJoinOfAnotherDefinition: a job with new upstreams has missed the undecided ticks; a removed
// job leaves nothing.
func TestJoinOfAnotherDefinition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.joins(t, "k", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.relayAll(t)
		old := r.entry(t, "j")
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "j", Digest: "d-new", WasDigest: old.Digest, Text: []byte(`{"name":"j","after":"b"}`)}}))
		r.tale(t, "j", "superseded -1763726400-0 x0 definition replaced", "missed 1-1 x1 upstream")
		if err := operate.Remove(t.Context(), r.led, "k"); err != nil {
			t.Fatal(err)
		}
		if left := must(r.client.HGetAll(t.Context(), r.led.Keys[0].Joins).Result()); len(left) > 0 {
			t.Errorf("left are %q", slices.Sorted(maps.Keys(left)))
		}
	})
}

// TestJoinOfANewerVersion: a job with new upstreams leaves unreadable joins alone, and records
// nothing.
func TestJoinOfANewerVersion(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.joins(t, "j", "succeeded", "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.relayAll(t)
		joins := r.led.Keys[0].Joins
		tick := must(r.client.HGet(t.Context(), joins, "j").Result())
		must(r.client.HSet(t.Context(), joins, "j|"+tick, "9|of a newer version").Result())
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "j", Digest: "d-new", WasDigest: r.entry(t, "j").Digest, Text: []byte(`{"name":"j","after":"b"}`)}}))
		r.tale(t, "j", "superseded -1763726400-0 x0 definition replaced")
		left := must(r.client.HGetAll(t.Context(), joins).Result())
		if left["j"] != tick || left["j|"+tick] != "9|of a newer version" {
			t.Errorf("left are %q", left)
		}
	})
}

// TestResultOfASuccess: a result is in the event, of a success alone, and is the payload of the
// follower's run.
func TestResultOfASuccess(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.want(t, claim.Granted, tickClaim("a", "a-1", 1))
		report := settle.Report{Job: "a", Run: "a-1", Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now, Tries: 1, Result: []byte(`{"text":"a|b"}`)}
		for range 2 {
			if got := must(settle.Settle(t.Context(), r.led, []settle.Report{report})); got[0] != settle.Settled {
				t.Fatal(got)
			}
		}
		e := r.events(t)
		if len(e) != 1 || string(e[0].Result) != `{"text":"a|b"}` || !slices.Equal(e[0].Followers, []string{"b"}) || !strings.HasPrefix(e[0].Record(), "2|a|") {
			t.Fatalf("events %+v", e)
		}
		r.relayAll(t)
		if l := r.open(t, "b"); l == nil || string(l.Payload) != `{"text":"a|b"}` {
			t.Errorf("pending: %+v", l)
		}
		r.sound(t)
	})
}

func TestRelayIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.create(t, "other")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		for _, job := range []string{"nobody", "other", "a"} {
			if got := must(follow.Relay(t.Context(), r.led, e, job)); got != follow.Unrelated {
				t.Errorf("%s: %s", job, got)
			}
		}
		stranger := e
		stranger.Upstream = "x"
		if got := must(follow.Relay(t.Context(), r.led, stranger, "b")); got != follow.Unrelated {
			t.Errorf("of another job: %s", got)
		}
		r.client.ZAdd(t.Context(), r.led.Keys[0].Pending, members(ledger.PendingMax)...)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Full {
			t.Errorf("too many pending: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.Keys[0].Pending, 0, 0)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Done {
			t.Errorf("one less: %s", got)
		}
	})
}

// The outbox is full and stays so: the upstream waits, so that nothing is lost and nothing grows.
func TestFullOutbox(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.create(t, "free")
		r.pass(t, time.Minute)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r1", 1))
		e := r.events(t)[0]
		r.client.ZAdd(t.Context(), r.led.Keys[0].Outbox, members(10_000)...)
		if a := r.want(t, claim.JobBusy, tickClaim("a", "r2", 2)); a.Detail != "full outbox" {
			t.Errorf("%+v", a)
		}
		r.want(t, claim.JobBusy, passing("a", "r", 0, late(2, 3)))
		r.want(t, claim.Granted, tickClaim("free", "r3", 1)) // it has no followers
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Full {
			t.Errorf("a follower that is followed: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.Keys[0].Outbox, 0, 1)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Done {
			t.Errorf("one less: %s", got)
		}
	})
}

func TestFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		followJob := func(job string, want error) {
			t.Helper()
			if err := follow.Follow(t.Context(), r.led, 0, "a", job); !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", job, err, want)
			}
		}
		for i := range 256 {
			followJob(fmt.Sprint("f", i), nil)
		}
		followJob("f0", nil) // again
		followJob("more", ledger.ErrRefused)
		for i := range 256 {
			if err := follow.Unfollow(t.Context(), r.led, 0, "a", fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
		}
		if left := r.client.HGetAll(t.Context(), r.led.Keys[0].Followers).Val(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Events that wait for a follower fill pages of the outbox; later events are read with the next
// scan.
func TestNewEventsDoNotWaitForOld(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		const old = 5 * query.EventsMax
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		pipe := r.client.Pipeline()
		for i := range old {
			pipe.Do(t.Context(), "ZADD", r.led.Keys[0].Outbox, e.At-old+int64(i), strings.TrimSuffix(e.Record(), fmt.Sprint(e.At))+fmt.Sprint(e.At-old+int64(i)))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		gaze, seen := query.NewScanner(r.led), make(map[string]bool)
		for look := range 20 {
			found, newest := must(gaze.Scan(t.Context(), r.now, 0)).Events, 0
			for _, x := range found {
				if len(x.Followers) != 1 {
					t.Errorf("look %d: followers %v", look, x.Followers)
				}
				if seen[x.Record()] = true; x.Record() == e.Record() {
					newest++
				}
			}
			if len(found) > 2*query.EventsMax || newest > 1 || look > 0 && newest == 0 && len(found) > query.EventsMax/2 {
				t.Errorf("look %d: %d events, the newest %d times", look, len(found), newest)
			}
		}
		if len(seen) != old+1 {
			t.Errorf("saw %d of %d events", len(seen), old+1)
		}
	})
}

// TestFollowerMovesOnBeforeItIsTold ends ticks of the upstream, and their follower is deployed to
// follow another job before the events are delivered: it has missed these ticks, once. Later events
// do not reach it.
func TestFollowerMovesOnBeforeItIsTold(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r2", 2))
		was := must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "b", Digest: "x"}}))[0]
		must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "b", Digest: "other", WasDigest: was.Digest, Text: []byte(`{"after":"c"}`)}}))
		r.pass(t, time.Second)
		r.runOne(t, "a", 3)
		for i, want := range []ledger.Status{follow.Done, follow.Done, follow.Unrelated} {
			e := r.events(t)[i]
			for range 2 {
				if got := must(follow.Relay(ctx, r.led, e, "b")); got != want {
					t.Errorf("told of tick %d: %s, want %s", i+1, got, want)
				}
			}
		}
		got := make(map[int64]string)
		for _, row := range r.rows(t, "b") {
			if row.Count > 0 {
				got[row.Tick-noon] += row.Outcome.String() + " " + row.Reason
			}
		}
		if want := map[int64]string{1000: "missed late", 2000: "skipped upstream"}; !maps.Equal(got, want) {
			t.Errorf("the follower's history has %v, want %v", got, want)
		}
	})
}

// A living node holds the follower in a definition other than the stored one: a success waits for a
// node with the stored one, and is missed when there is none. The job's name makes no difference.
func TestFollowerHeldInAnotherDefinition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		for tick, c := range []struct {
			holders []string
			unheld  bool
			want    ledger.Status
		}{{[]string{"other"}, false, follow.Unheld}, {[]string{"other"}, true, follow.Done}, {[]string{"other", "d-after-b"}, true, follow.Done}} {
			r.runOne(t, "a", int64(tick+1))
			e := r.events(t)[tick]
			e.Holders, e.Unheld = c.holders, c.unheld
			if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != c.want {
				t.Errorf("tick %d: %s, want %s", tick+1, got, c.want)
			}
		}
		r.tale(t, "b", "missed 2-2 x1 late")
		r.relayAll(t)
		if l := must(query.InFlight(t.Context(), r.led, "b")); len(l) != 2 {
			t.Errorf("in flight: %+v", l)
		}
		r.sound(t)
	})
}

// TestRelayedByAnotherServer: followers' answers to one server count for nothing at another one.
func TestRelayedByAnotherServer(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		if err := follow.Relayed(t.Context(), r.led.At("another"), e); !errors.Is(err, ledger.ErrServer) || len(r.events(t)) != 1 {
			t.Errorf("another server: %v, and %d events are left; want ErrServer and 1", err, len(r.events(t)))
		}
		if err := follow.Relayed(t.Context(), r.led.At(r.epoch()), e); err != nil || len(r.events(t)) != 0 {
			t.Errorf("the server: %v, and %d events are left; want none", err, len(r.events(t)))
		}
	})
}
