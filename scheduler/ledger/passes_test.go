package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestPassesLeadToTheTick: each pass begins where the one before it ended, and the tick comes behind
// the last. Anything else is refused, whoever made it up, and changes nothing.
func TestPassesLeadToTheTick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Hour)
		good := passing("a", "r", 8, late(1, 3), late(4, 7))
		for name, change := range map[string]func(c *Claim){
			"a gap before the first":   func(c *Claim) { c.Passes[0].First += 1000 },
			"a gap between":            func(c *Claim) { c.Passes[1].First += 1000 },
			"an overlap between":       func(c *Claim) { c.Passes[1].First -= 1000 },
			"a gap before the tick":    func(c *Claim) { c.Tick, c.Next = c.Tick+1000, c.Next+1000 },
			"the tick among them":      func(c *Claim) { c.Tick -= 1000 },
			"an end before the first":  func(c *Claim) { c.Passes[0].Last = noon },
			"no way on":                func(c *Claim) { c.Passes[1].Next = c.Passes[1].Last },
			"the end of the schedule":  func(c *Claim) { c.Passes[0].Next = 0 },
			"on to the tick":           func(c *Claim) { c.Next = c.Tick },
			"nothing at all":           func(c *Claim) { c.Passes, c.Tick, c.Next = nil, 0, c.From },
			"nothing and on":           func(c *Claim) { c.Passes, c.Tick, c.Next = nil, 0, noon+2000 },
			"no tick, and further":     func(c *Claim) { c.Tick, c.Next = 0, c.Tick+1000 },
			"paused without a pause":   func(c *Claim) { c.Passes[1].Outcome = jobs.OutcomePaused },
			"skipped and nothing busy": func(c *Claim) { c.Passes[1].Outcome = jobs.OutcomeSkipped },
			"another cursor":           func(c *Claim) { c.From += 1000 },
		} {
			bad := good
			bad.Passes = append([]Pass(nil), good.Passes...)
			change(&bad)
			if a := r.claim(t, bad); a.Verdict != Moved || a.Cursor != noon+1000 {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if e := r.entry(t, "a"); e.Cursor != noon+1000 || len(r.rows(t, "a")) > 0 {
			t.Fatalf("something was recorded: %+v", e)
		}
		r.want(t, Granted, good)
		r.settle(t, Settled, "a", "r", jobs.OutcomeSucceeded)
		r.tale(t, "a", "missed 1-7 x7 late", "succeeded 8")
		r.sound(t)
	})
}

// Passes without a tick, up to the last tick of the schedule and while a run holds the job.
func TestPassesAlone(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 4*time.Second)
		r.want(t, Early, passing("a", "r", 0, late(1, 5)))
		if a := r.want(t, Passed, passing("a", "r", 0, late(1, 1))); a.Cursor != noon+2000 {
			t.Errorf("%+v", a)
		}
		r.want(t, Granted, tickClaim("a", "r2", 2))
		if a := r.want(t, Passed, passing("a", "r", 0, late(3, 3))); a.Cursor != noon+4000 {
			t.Errorf("%+v", a)
		}
		end := passing("a", "r", 0, seconds(jobs.OutcomeMissed, ReasonStartWithin, 4, 4))
		end.Passes[0].Next, end.Next = 0, 0
		if a := r.want(t, Passed, end); a.Cursor != 0 {
			t.Errorf("%+v", a)
		}
		if found := must(r.led.NewGaze().Look(t.Context(), r.now+10_000, 0)); len(found.Late) > 0 {
			t.Errorf("still due: %+v", found.Late)
		}
		r.sound(t)
		r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded)
		r.tale(t, "a", "missed 1-1 x1 late", "missed 3-3 x1 late", "missed 4-4 x1 start_within", "succeeded 2")
		r.sound(t)
	})
}

// TestPassesFitThePause: its ticks are paused, and no others are.
func TestPassesFitThePause(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.pass(t, 200*time.Millisecond)
		if err := r.led.Pause(t.Context(), "a", Pause{Until: noon + 5500}); err != nil { // of ticks 2 to 5
			t.Fatal(err)
		}
		pause := Window{noon + 1700, noon + 5500}
		r.pass(t, 8*time.Second)
		for name, c := range map[string]Claim{
			"a tick of it":           tickClaim("a", "r", 2),
			"late ones":              passing("a", "r", 6, late(2, 5)),
			"one too few":            passing("a", "r", 5, paused(2, 4)),
			"one too many":           passing("a", "r", 7, paused(2, 6)),
			"from before its end on": passing("a", "r", 8, paused(2, 4), late(5, 7)),
			"all over it":            passing("a", "r", 8, late(2, 7)),
		} {
			if a := r.want(t, Moved, c); a.Pause != pause || a.Busy != (Window{}) {
				t.Errorf("%s: %+v", name, a)
			}
		}
		r.want(t, Passed, passing("a", "r", 0, paused(2, 3)))
		if e := r.entry(t, "a"); e.Pause != pause {
			t.Errorf("in the middle of it the entry is %+v", e)
		}
		r.want(t, Granted, passing("a", "r8", 8, paused(4, 5), late(6, 7)))
		if e := r.entry(t, "a"); e.Pause != (Window{}) {
			t.Errorf("behind it the entry is %+v", e)
		}
		r.settle(t, Settled, "a", "r8", jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "paused 2-5 x4 paused", "missed 6-7 x2 late", "succeeded 8")
		r.sound(t)
	})
}
