package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// with is a claim under another overlap policy.
func with(o jobs.Overlap, c Claim) Claim {
	c.Overlap = o
	return c
}

// passing is a claim that passes ticks before the one that it runs; with 0 it runs none.
func passing(job, run string, second int64, passes ...Pass) Claim {
	c := Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: passes[0].First, Passes: passes, Next: passes[len(passes)-1].Next}
	if second != 0 {
		c.Tick, c.Next = noon+second*1000, noon+second*1000+1000
	}
	return c
}

func overlapped(first, last int64) Pass {
	return seconds(jobs.OutcomeSkipped, ReasonOverlap, first, last)
}
func late(first, last int64) Pass { return seconds(jobs.OutcomeMissed, ReasonLate, first, last) }
func paused(first, last int64) Pass {
	return seconds(jobs.OutcomePaused, ReasonPaused, first, last)
}

// TestQueueRunsTheLatestTickOfTheBusyTime: ticks wait while a run goes on; then the latest of them
// runs, the older ones are skipped, and nothing else may become of them.
func TestQueueRunsTheLatestTickOfTheBusyTime(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapQueue, jobs.OverlapReplace} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				r.want(t, Granted, with(o, tickClaim("a", "r1", 1)))
				granted := r.now
				r.pass(t, 4*time.Second) // ticks 2 to 5 come due
				if a := r.want(t, Held, with(o, tickClaim("a", "r2", 2))); a.Detail != "r1" {
					t.Errorf("held by %q", a.Detail)
				}
				r.want(t, Held, with(o, passing("a", "r2", 5, late(2, 4))))
				if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Busy != (Window{}) {
					t.Errorf("while it goes on, the entry is %+v", e)
				}
				r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
				busy := Window{granted, r.now}
				if e := r.entry(t, "a"); e.Busy != busy {
					t.Errorf("busy %+v, want %+v", e.Busy, busy)
				}
				r.pass(t, 3*time.Second) // 6 to 8 come due, of no busy time
				for name, c := range map[string]Claim{
					"not the latest":            tickClaim("a", "r2", 2),
					"still not the latest":      passing("a", "r2", 4, overlapped(2, 3)),
					"too many":                  passing("a", "r2", 6, overlapped(2, 5)),
					"not missed":                passing("a", "r2", 5, late(2, 4)),
					"all skipped":               passing("a", "r2", 0, overlapped(2, 5)),
					"skipped, no reason to run": passing("a", "r2", 0, overlapped(2, 4)),
				} {
					if a := r.want(t, Moved, with(o, c)); a.Busy != busy || a.Cursor != noon+2000 {
						t.Errorf("%s: %+v", name, a)
					}
				}
				r.want(t, Moved, with(jobs.OverlapSkip, passing("a", "r2", 5, overlapped(2, 4)))) // has no busy time
				r.want(t, Granted, with(o, passing("a", "r2", 5, overlapped(2, 4))))
				r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded)
				r.want(t, Granted, with(o, tickClaim("a", "r6", 6)))
				r.settle(t, Settled, "a", "r6", jobs.OutcomeSucceeded)
				r.tale(t, "a", "succeeded 1", "skipped 2-4 x3 overlap", "succeeded 5", "succeeded 6")
				r.sound(t)
			})
		})
	}
}

// Ticks of the busy time that start_within gives up are missed, and those of a pause are paused.
func TestBusyTicksThatDoNotRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Granted, with(jobs.OverlapQueue, tickClaim("a", "r1", 1)))
		r.pass(t, 10*time.Second)
		if err := r.led.Pause(t.Context(), "a", Pause{Until: r.now + 1000}); err != nil {
			t.Fatal(err)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.pass(t, 5*time.Second)
		// The pause begins at the cursor, which nobody has claimed.
		r.want(t, Moved, with(jobs.OverlapQueue, passing("a", "r2", 12, overlapped(2, 11))))
		r.want(t, Granted, with(jobs.OverlapQueue, passing("a", "r2", 13, paused(2, 12))))
		r.pass(t, 5*time.Second)
		r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded) // busy for 17 to 21
		r.pass(t, 5*time.Second)
		early := seconds(jobs.OutcomeMissed, ReasonStartWithin, 14, 18)
		r.want(t, Granted, with(jobs.OverlapQueue, passing("a", "r3", 21, early, overlapped(19, 20))))
		r.settle(t, Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "paused 2-12 x11 paused", "succeeded 13", "missed 14-18 x5 start_within", "skipped 19-20 x2 overlap", "succeeded 21")
		r.sound(t)
	})
}

// TestReplaceAsksForTheEndOnce: only for a tick that came due while the run was going, and only once.
func TestReplaceAsksForTheEndOnce(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		wishes := func(want ...Cancel) {
			t.Helper()
			if got := must(r.led.Cancels(t.Context())); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
				t.Fatalf("cancel flags %+v, want %+v", got, want)
			}
		}
		r.create(t, "a")
		r.pass(t, 2500*time.Millisecond)
		r.want(t, Granted, with(jobs.OverlapReplace, tickClaim("a", "r1", 1)))
		r.want(t, Held, with(jobs.OverlapReplace, tickClaim("a", "r2", 2))) // was due before
		wishes()
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Granted, with(jobs.OverlapReplace, tickClaim("a", "r2", 2)))
		r.want(t, Early, with(jobs.OverlapReplace, tickClaim("a", "r3", 3)))
		r.want(t, Early, with(jobs.OverlapReplace, passing("a", "r3", 4, late(3, 3))))
		wishes()
		r.pass(t, time.Second)
		r.want(t, Held, with(jobs.OverlapReplace, tickClaim("a", "r3", 3)))
		wishes(Cancel{Run: "r2"})
		raised := r.client.HGet(t.Context(), r.led.keys[0].cancels, "r2").Val()
		r.pass(t, time.Second)
		r.want(t, Held, with(jobs.OverlapReplace, tickClaim("a", "r3", 3)))
		if again := r.client.HGet(t.Context(), r.led.keys[0].cancels, "r2").Val(); again != raised {
			t.Errorf("raised as %q and again as %q", raised, again)
		}
		r.settle(t, Settled, "a", "r2", jobs.OutcomeCancelled)
		wishes()
		r.want(t, Granted, with(jobs.OverlapReplace, passing("a", "r4", 4, overlapped(3, 3))))
		r.pass(t, time.Second)
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "r4"}}))
		r.want(t, Held, with(jobs.OverlapReplace, tickClaim("a", "r5", 5))) // by one that waits: nothing to end
		wishes()
		r.sound(t)
	})
}

// TestAllowRunsBesideEachOther: each tick has a lease of its own, and none holds the job.
func TestAllowRunsBesideEachOther(t *testing.T) {
	allow := func(run string, second int64) Claim { return with(jobs.OverlapAllow, tickClaim("a", run, second)) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 10*time.Second)
		one, two := r.want(t, Granted, allow("r1", 1)), r.want(t, Granted, allow("r2", 2))
		if e := r.entry(t, "a"); e.Open != "" || two.Token <= one.Token {
			t.Errorf("held by %q, tokens %d and %d", e.Open, one.Token, two.Token)
		}
		if again := r.want(t, Granted, allow("r1", 1)); again.Token != one.Token || again.Left != one.Left {
			t.Errorf("asked again: %+v, first %+v", again, one)
		}
		if got := must(r.led.Claim(t.Context(), Claimer{ID: "n2"}, r.now, []Claim{allow("r1", 1)})); got[0].Verdict != Moved {
			t.Errorf("another node is answered %+v", got[0])
		}
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		r.want(t, Granted, with(jobs.OverlapAllow, pendingClaim("a", "t")))
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "r1"}, {Job: "a", Run: "t"}}))
		r.want(t, Moved, allow("r1", 1))
		r.want(t, Granted, allow("r3", 3))
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"})) // handed back, and not asked for once more
		if open := must(r.led.Open(t.Context(), "a")); len(open) != 4 {
			t.Errorf("in flight: %+v", open)
		}
		for _, run := range []string{Successor("r1"), Successor("t")} {
			r.want(t, Granted, with(jobs.OverlapAllow, pendingClaim("a", run)))
		}
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		for _, run := range []string{"r3", "r2", Successor("t"), Successor("r1")} {
			r.settle(t, Settled, "a", run, jobs.OutcomeSucceeded)
		}
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		if open := must(r.led.Open(t.Context(), "a")); len(open) != 0 {
			t.Errorf("in flight: %+v", open)
		}
		if e := r.entry(t, "a"); e.Busy != (Window{}) {
			t.Errorf("a busy time: %+v", e)
		}
		r.sound(t)
	})
}
