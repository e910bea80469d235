package ledger

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// A deleted or lost record is missed once: nodes may report its run in another epoch. Then the run
// holds its job no longer, because no node could ever end that run.
func TestLostRecordFreesItsJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		lose := func(run string) {
			t.Helper()
			if n := r.client.Del(t.Context(), r.led.keys[0].runs).Val(); n != 1 {
				t.Fatalf("%d keys deleted", n)
			}
			for _, missed := range []bool{true, false} {
				_, err := r.led.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: run, TTL: ttl}})
				if errors.Is(err, ErrServer) != missed {
					t.Errorf("renewed without its record: %v", err)
				}
			}
			must(r.led.Restore(t.Context(), ""))
		}
		r.pass(t, time.Second)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		lose("r1")
		r.pass(t, time.Second)
		r.want(t, Granted, tickClaim("a", "r2", 2))
		pending := pendingClaim("a", must(r.led.Trigger(t.Context(), "a", Trigger{Run: "hand"})))
		r.want(t, JobBusy, pending)
		lose("r2")
		r.want(t, Granted, pending)
		lose("hand")
		r.pass(t, time.Second)
		other := pendingClaim("a", must(r.led.Trigger(t.Context(), "a", Trigger{Run: "other"})))
		both := must(r.led.Claim(t.Context(), node, r.now, []Claim{tickClaim("a", "r3", 3), other}))
		if both[0].Verdict != Granted || both[1].Verdict != JobBusy {
			t.Errorf("of two runs in a batch got %s and %s; want one granted", both[0].Verdict, both[1].Verdict)
		}
	})
}

func TestClaimIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		other := tickClaim("a", "r", 1)
		other.Digest = "d-other"
		r.want(t, Early, tickClaim("a", "r", 1))
		r.pass(t, 499*time.Millisecond) // 501 ms before it is due
		r.want(t, Early, tickClaim("a", "r", 1))
		r.pass(t, 5500*time.Millisecond)
		r.want(t, Unknown, tickClaim("nobody", "r", 1))
		if a := r.want(t, Stale, tickClaim("a", "r", 2)); a.Cursor != noon+1000 {
			t.Errorf("moved to %d", a.Cursor)
		}
		if a := r.want(t, Superseded, other); a.Detail != "d-second" {
			t.Errorf("superseded by %q", a.Detail)
		}
		for _, off := range []int64{1001, -1001} {
			_, err := r.led.Claim(t.Context(), node, r.now+off, []Claim{tickClaim("a", "r", 1)})
			var clock *ClockError
			if !errors.Is(err, ErrClock) || !errors.As(err, &clock) || clock.Redis.UnixMilli() != r.now || clock.Believed.UnixMilli() != r.now+off {
				t.Errorf("off by %d ms: %v", off, err)
			}
			if _, err := r.led.Reap(t.Context(), r.now+off, r.epoch(), []Run{{Job: "a", ID: "r"}}); !errors.Is(err, ErrClock) {
				t.Errorf("reap off by %d ms: %v", off, err)
			}
			if _, err := r.led.Define(t.Context(), r.now+off, []Definition{{Job: "b"}}); !errors.Is(err, ErrClock) {
				t.Errorf("define off by %d ms: %v", off, err)
			}
		}
		if rows := r.rows(t, "a"); len(rows) != 0 || r.entry(t, "a").Cursor != noon+1000 {
			t.Errorf("something was recorded: %+v, %+v", rows, r.entry(t, "a"))
		}
		if _, err := r.led.Claim(t.Context(), node, r.now+1000, []Claim{tickClaim("a", "r", 1)}); err != nil {
			t.Errorf("off by the tolerated second: %v", err)
		}
	})
}

// A batch is as good as its items one after another, also when it is full, and when a job or a
// report stands in it twice.
func TestBatch(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		var claims []Claim
		for i := range BatchMax {
			job := fmt.Sprintf("job-%03d", i)
			r.create(t, job)
			claims = append(claims, tickClaim(job, "run-"+job, 1))
		}
		r.pass(t, 5*time.Second)
		const free = BatchMax - 2 // as many are idle
		must(r.led.Trigger(t.Context(), "job-000", Trigger{Run: "by hand"}))
		claims[free], claims[free+1] = tickClaim("job-001", "other", 2), pendingClaim("job-000", "by hand") // both held
		for i, a := range must(r.led.Claim(t.Context(), node, r.now, claims)) {
			if (a.Verdict == Granted) != (i < free) || i >= free && a.Verdict != JobBusy {
				t.Errorf("item %d: %+v", i, a)
			}
		}
		reports := each(claims, func(c Claim) Report {
			return Report{Job: c.Job, Run: c.Run, Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now}
		})
		reports[free], reports[free+1] = reports[0], reports[1] // each once more
		reports[free+1].Outcome = jobs.OutcomeFailed
		for i, w := range must(r.led.Settle(t.Context(), reports)) {
			if (w == Settled) != (i <= free) {
				t.Errorf("report %d: %s", i, w)
			}
		}
		r.tale(t, "job-000", "succeeded 1")
		r.sound(t)
	})
}

// TestPassesLeadToTheTick: each pass begins where the previous pass ended, and the tick comes
// behind the last. Any other claim is refused and changes nothing.
func TestPassesLeadToTheTick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Hour)
		good := passing("a", "r", 8, late(1, 3), late(4, 7))
		for name, change := range map[string]func(c *Claim){
			"a gap before the first":   func(c *Claim) { c.Skipped[0].First += 1000 },
			"a gap between":            func(c *Claim) { c.Skipped[1].First += 1000 },
			"an overlap between":       func(c *Claim) { c.Skipped[1].First -= 1000 },
			"a gap before the tick":    func(c *Claim) { c.Tick, c.Next = c.Tick+1000, c.Next+1000 },
			"the tick among them":      func(c *Claim) { c.Tick -= 1000 },
			"an end before the first":  func(c *Claim) { c.Skipped[0].Last = noon },
			"no way on":                func(c *Claim) { c.Skipped[1].Next = c.Skipped[1].Last },
			"the end of the schedule":  func(c *Claim) { c.Skipped[0].Next = 0 },
			"on to the tick":           func(c *Claim) { c.Next = c.Tick },
			"nothing at all":           func(c *Claim) { c.Skipped, c.Tick, c.Next = nil, 0, c.From },
			"nothing and on":           func(c *Claim) { c.Skipped, c.Tick, c.Next = nil, 0, noon+2000 },
			"no tick, and further":     func(c *Claim) { c.Tick, c.Next = 0, c.Tick+1000 },
			"paused without a pause":   func(c *Claim) { c.Skipped[1].Outcome = jobs.OutcomePaused },
			"skipped and nothing busy": func(c *Claim) { c.Skipped[1].Outcome = jobs.OutcomeSkipped },
			"another cursor":           func(c *Claim) { c.From += 1000 },
		} {
			bad := good
			bad.Skipped = slices.Clone(good.Skipped)
			change(&bad)
			if a := r.claim(t, bad); a.Verdict != Stale || a.Cursor != noon+1000 {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if e := r.entry(t, "a"); e.Cursor != noon+1000 || len(r.rows(t, "a")) > 0 {
			t.Fatalf("something was recorded: %+v", e)
		}
		r.complete(t, jobs.OutcomeSucceeded, good)
		r.tale(t, "a", "missed 1-7 x7 late", "succeeded 8")
		r.sound(t)
	})
}

// A claim that is repeated after its answer was lost gets the same answer while its run goes on.
func TestClaimAskedAgain(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 2*time.Second)
		first := r.want(t, Granted, tickClaim("a", "r1", 1))
		r.pass(t, time.Second)
		again := r.want(t, Granted, tickClaim("a", "r1", 1))
		if again.Token != first.Token || again.Left != ttl-time.Second {
			t.Errorf("first %+v, again %+v", first, again)
		}
		r.pass(t, time.Hour)
		if again = r.want(t, Granted, tickClaim("a", "r1", 1)); again.Left != 0 {
			t.Errorf("a lapsed lease has %s left", again.Left)
		}
		others := must(r.led.Claim(t.Context(), Claimer{ID: "n2"}, r.now, []Claim{tickClaim("a", "r1", 1)}))
		if others[0].Verdict != Stale {
			t.Errorf("another node is answered %+v", others[0])
		}
		ask := tickClaim("a", "r1", 1)
		ask.From = 0 // a mere question
		r.want(t, Granted, ask)
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Stale, tickClaim("a", "r1", 1))
		r.want(t, Stale, ask)
		r.sound(t)
	})
}

// TestLeaseBeginsShort: a lease lasts five seconds, or three times max_skew, until it is renewed,
// and then as long as its ttl.
func TestLeaseBeginsShort(t *testing.T) {
	for _, c := range []struct{ skew, ttl, first time.Duration }{
		{time.Second, time.Minute, 5 * time.Second},
		{time.Second, 4 * time.Second, 4 * time.Second},
		{4 * time.Second, time.Minute, 12 * time.Second},
	} {
		onBoth(t, Config{Partitions: 1, MaxSkew: c.skew}, func(t *testing.T, r *rig) {
			r.create(t, "a")
			r.pass(t, time.Minute)
			claim := tickClaim("a", "r1", 1)
			claim.TTL = c.ttl
			lasts := func() time.Duration {
				return millisOf(must(r.led.InFlight(t.Context(), "a"))[0].Until - r.now)
			}
			a := r.want(t, Granted, claim)
			if got := lasts(); got != c.first || a.Left != c.first || r.led.FirstLease(c.ttl) != c.first {
				t.Errorf("%+v: granted for %s, answered %s, FirstLease %s", c, got, a.Left, r.led.FirstLease(c.ttl))
			}
			must(r.led.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "r1", Token: a.Token, TTL: c.ttl}}))
			if got := lasts(); got != c.ttl {
				t.Errorf("%+v: renewed for %s", c, got)
			}
		})
	}
}

// TestClaimAhead: a tick is granted half a second before it is due, with a lease that counts from
// then. Passes and overlap are decided when the tick is due.
func TestClaimAhead(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "held")
		r.pass(t, 500*time.Millisecond)
		first := tickClaim("a", "r1", 1)
		if a := r.want(t, Granted, first); a.Left != first.TTL+500*time.Millisecond {
			t.Errorf("its lease lasts %s, want it to count from the tick", a.Left)
		}
		r.pass(t, 500*time.Millisecond)
		r.want(t, Granted, tickClaim("held", "r2", 1))
		r.pass(t, 600*time.Millisecond)
		ahead := tickClaim("held", "r3", 2)
		if a := r.want(t, JobBusy, ahead); a.Detail != "r2" {
			t.Errorf("held by %q", a.Detail)
		}
		r.want(t, Early, passing("a", "r4", 0, late(2, 2)))
		r.pass(t, 400*time.Millisecond)
		r.want(t, Skipped, ahead)
	})
}

// A job has as many ticks as its bound allows: refused, skipped and repeated claims do not count.
// The claim after the last tick ends the job, whatever that claim passes, and again after a rewind.
func TestMaxRuns(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		bounded := func(run string, at int64, bound int) Claim {
			c := tickClaim("a", run, at)
			c.MaxRuns = bound
			return c
		}
		r.pass(t, time.Second)
		r.want(t, Granted, bounded("r1", 1, 2))
		r.want(t, Granted, bounded("r1", 1, 2)) // its answer was lost
		if n := r.entry(t, "a").Ran; n != 1 {
			t.Errorf("%d ticks are counted", n)
		}
		r.pass(t, time.Second)
		r.want(t, Skipped, bounded("r2", 2, 2))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.pass(t, time.Second)
		r.want(t, Granted, bounded("r3", 3, 2))
		r.settle(t, Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.want(t, Early, bounded("r4", 4, 2)) // it ends when the next tick is due, and not before
		r.pass(t, 2*time.Second)
		late := bounded("r5", 5, 2)
		late.From, late.Skipped = noon+4000, []SkippedRange{{Outcome: jobs.OutcomeMissed, Reason: ReasonLate, First: noon + 4000, Last: noon + 4000, Count: 1, Next: noon + 5000}}
		if a := r.want(t, RecordedOnly, late); a.Cursor != 0 || a.Detail != ReasonMaxRuns {
			t.Errorf("answered %+v", a)
		}
		e, rows := r.entry(t, "a"), r.rows(t, "a")
		if e.Cursor != 0 || e.Last != noon+3000 || e.Counts[jobs.OutcomeMissed] != 0 || e.Ran != 2 {
			t.Errorf("the entry is %+v", e)
		}
		if end := rows[len(rows)-1]; end.Outcome != jobs.OutcomeSuperseded || end.Reason != ReasonMaxRuns || end.Count != 0 || end.Prev != noon+4000 || end.Next != 0 {
			t.Errorf("the last row is %+v", end)
		}
		r.want(t, Stale, bounded("r6", 4, 2))
		if n := len(r.rows(t, "a")); n != len(rows) {
			t.Errorf("%d rows, then %d", len(rows), n)
		}
	})
}
