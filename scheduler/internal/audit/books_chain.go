package audit

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// recompute compares every step with the schedule that was in force: the stored schedule, and
// before each row that replaced a definition, the schedule in that row's note.
func (c *bookCheck) recompute() {
	if c.def.Name == "" {
		return
	}
	s, err := c.def.ParsedSchedule()
	if err != nil {
		c.add(Unsound, 0, []any{cursorOf(c.entry)}, "its schedule cannot be recomputed: %v", err)
		return
	}
	c.schedule = s
	c.inForce()
	for _, k := range c.steps {
		switch {
		case k.row != nil && turns(k.row):
			c.turn(k)
		case k.row != nil && k.row.Ranged:
			c.span(k)
		default:
			c.ran(k)
		}
	}
	if at := c.entry.Cursor; len(c.steps) == 0 && at != 0 && !isTick(s, at) {
		c.add(P2, at, []any{cursorOf(c.entry)}, "the cursor stands at %s, which is no tick of %s", stamp(at), s)
	}
}

// inForce sets the schedules that were in force at each step, walking back from the cursor.
func (c *bookCheck) inForce() {
	s, current := c.schedule, true
	for i := len(c.steps) - 1; i >= 0; i-- {
		k := &c.steps[i]
		k.before, k.after, k.current = s, s, current
		if k.row == nil || !replaces(k.row) {
			continue
		}
		current = false
		s = nil
		if !k.anew && (k.row.Prev != 0 || k.row.Note != "") { // else the old schedule had no more ticks
			var err error
			if s, err = cron.ParseFor(c.entry.Job, k.row.Note, ""); err != nil {
				s = nil
				c.add(Unsound, k.row.At, []any{k}, "what the schedule before %s was cannot be read, its ticks cannot be recomputed: %v", stamp(k.row.At), err)
			}
		}
		k.before = s
	}
}

func isTick(s *jobs.Schedule, at int64) bool { return tickAfter(s, at-1) == at }

// tickAfter is the first tick after an instant.
func tickAfter(s *jobs.Schedule, at int64) int64 {
	if at == never {
		return never
	}
	next := s.Next(time.UnixMilli(at))
	if next.IsZero() {
		return never
	}
	return next.UnixMilli()
}

// ran checks the step of one run.
func (c *bookCheck) ran(k step) {
	s := k.before
	if s == nil {
		return
	}
	c.ticks++
	var tick int64
	if k.run != nil {
		tick = k.run.Tick
	} else {
		tick = k.row.Tick
	}
	switch want := tickAfter(s, tick); {
	case tick != k.prev:
		c.add(P2, max(tick, k.prev), []any{k}, "%s fills the step from %s, which is another tick", k, stamp(k.prev))
	case !isTick(s, tick):
		c.add(P2, tick, []any{k}, "%s: %s is no tick of %s", k, stamp(tick), s)
	case k.next != want:
		c.add(P2, tick, []any{k}, "%s: the tick after it is %s, and the cursor went to %s", k, stamp(want), stamp(k.next))
	}
}

// span checks a row of ticks that did not run: the row covers every tick of its time, the ticks
// were due when they were recorded, and the job's policies can lead to the reason.
func (c *bookCheck) span(k step) {
	r := k.row
	if s := k.before; s != nil {
		c.ticks += r.Count
		n, last := count(s, r.Tick, r.Until)
		switch want := tickAfter(s, r.Until); {
		case r.Tick != k.prev:
			c.add(P2, r.Until, []any{k}, "%s begins at another tick, %s", k, stamp(r.Tick))
		case !isTick(s, r.Tick):
			c.add(P2, r.Until, []any{k}, "%s: %s is no tick of %s", k, stamp(r.Tick), s)
		case n != r.Count || last != r.Until:
			c.add(P2, r.Until, []any{k}, "%s: up to %s the schedule %s has %d ticks, the last of them at %s", k, stamp(r.Until), s, n, stamp(orNever(last)))
		case k.next != want:
			c.add(P2, r.Until, []any{k}, "%s: the tick after the last of them is %s, and the cursor went to %s", k, stamp(want), stamp(k.next))
		}
	}
	switch {
	case r.Outcome.Ran():
		c.add(P2, r.Until, []any{k}, "%s: what ran is recorded run by run", k)
	case r.Until > r.At:
		c.add(P2, r.Until, []any{k}, "%s was recorded before the last of them was due", k)
	case r.Reason == "" || outcomeOf[r.Reason] != 0 && outcomeOf[r.Reason] != r.Outcome:
		c.add(P2, r.Until, []any{k}, "%s: %q is no reason for that", k, r.Reason)
	case k.current && !possible(c.def, r.Reason):
		c.add(P2, r.Until, []any{k}, "%s: with the job's policies nothing is %s for %q", k, r.Outcome, r.Reason)
	}
}

var outcomeOf = map[string]jobs.Outcome{
	ledger.ReasonLate: jobs.OutcomeMissed, ledger.ReasonCatchUpMax: jobs.OutcomeMissed, ledger.ReasonStartWithin: jobs.OutcomeMissed, ledger.ReasonNoNode: jobs.OutcomeMissed, ledger.ReasonFailover: jobs.OutcomeMissed,
	ledger.ReasonOverlap: jobs.OutcomeSkipped, ledger.ReasonPaused: jobs.OutcomePaused,
}

// possible reports whether a definition's policies can lead to a reason.
func possible(d jobs.Definition, reason string) bool {
	switch reason {
	case ledger.ReasonLate:
		return d.CatchUp != jobs.CatchUpAll
	case ledger.ReasonCatchUpMax:
		return d.CatchUp == jobs.CatchUpAll
	case ledger.ReasonStartWithin:
		return d.StartWithin > 0
	case ledger.ReasonOverlap:
		return d.Overlap != jobs.OverlapAllow
	default:
		return true
	}
}

// count is the number of ticks from one instant to another, both included, and the last of them.
func count(s *jobs.Schedule, first, last int64) (int64, int64) {
	n, at := s.Count(time.UnixMilli(first), time.UnixMilli(last).Add(time.Millisecond))
	if n == 0 {
		return 0, 0
	}
	return int64(n), at.UnixMilli()
}

// turn checks a step that sets the cursor anew.
func (c *bookCheck) turn(k step) {
	r := k.row
	switch r.Reason {
	case ledger.ReasonReplacedDef:
		c.replaced(k)
	case ledger.ReasonRewound:
		switch {
		case k.next >= k.prev || r.Count != 0 || r.Tick != r.Next:
			c.add(P2, r.At, []any{k}, "a cursor that was set back leads to %s", stamp(k.next))
		case k.after != nil && !isTick(k.after, k.next):
			c.add(P2, r.At, []any{k}, "the cursor was set back to %s, which is no tick of %s", stamp(k.next), k.after)
		}
	case ledger.ReasonMaxRuns:
		if k.next != never || r.Count != 0 || k.current && (c.def.MaxRuns == 0 || c.entry.Ran < int64(c.def.MaxRuns)) {
			c.add(P2, r.At, []any{k}, "%s: the job ended with %d ticks granted, and max_runs is %d", k, c.entry.Ran, c.def.MaxRuns)
		}
	default:
		c.add(P2, r.At, []any{k}, "%s: %q is no reason for that", k, r.Reason)
	}
}

// replaced checks that a new definition left none of the old one's ticks behind and began in its
// own future: it neither fires for the past nor passes over a tick.
func (c *bookCheck) replaced(k step) {
	r := k.row
	// Where the schedule is the same, a tick that is due goes on.
	stays := r.Count == 0 && k.prev == k.next && k.prev != never &&
		(k.before == nil || k.after == nil || k.before.String() == k.after.String())
	if s := k.before; s != nil {
		c.ticks += r.Count
		rest := k.prev // the first tick of the old schedule that was not recorded
		if r.Count > 0 {
			rest = tickAfter(s, r.Until)
		}
		n, last := count(s, r.Tick, r.Until)
		switch {
		case k.prev != never && !isTick(s, k.prev):
			c.add(P2, r.At, []any{k}, "the cursor stood at %s, which was no tick of %s", stamp(k.prev), s)
		case r.Count > 0 && (n != r.Count || last != r.Until || r.Tick != k.prev):
			c.add(P2, r.At, []any{k}, "%s: up to %s the schedule %s had %d ticks, the last of them at %s", k, stamp(r.Until), s, n, stamp(orNever(last)))
		case rest <= r.At && !stays:
			c.add(P2, r.At, []any{k}, "the definition was replaced at %s, and the tick %s before that is not accounted for", stamp(r.At), stamp(rest))
		}
	}
	if s := k.after; s != nil {
		latest := max(r.At+skewMost, r.Until, r.Prev)
		switch {
		case k.next != never && !isTick(s, k.next):
			c.add(P2, r.At, []any{k}, "the new definition began at %s, which is no tick of %s", stamp(k.next), s)
		case k.next <= r.At && !stays:
			c.add(P2, r.At, []any{k}, "the new definition began at %s, before it was stored", stamp(k.next))
		case r.Prev != 0 && k.next > tickAfter(s, latest):
			c.add(P2, r.At, []any{k}, "the new definition began at %s and passed over the tick %s", stamp(k.next), stamp(tickAfter(s, latest)))
		}
	}
}
