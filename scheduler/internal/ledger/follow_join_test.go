package ledger_test

import (
	"encoding/json"
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
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

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
