package ledger

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// recompute holds every step against the schedule that was in force: the stored one, and before each
// row that replaced a definition, the one noted there.
func (a *audit) recompute() {
	if a.def.V == 0 {
		return
	}
	s, err := jobs.ParseScheduleFor(a.entry.Job, a.def.Schedule, a.def.TimeZone)
	if err != nil {
		a.add(Books, 0, []shower{a.cursor()}, "its schedule cannot be recomputed: %v", err)
		return
	}
	a.schedule = s
	a.inForce()
	for _, k := range a.steps {
		switch {
		case k.row != nil && k.row.turns():
			a.turn(k)
		case k.row != nil && k.row.Ranged:
			a.span(k)
		default:
			a.ran(k)
		}
	}
	if c := a.entry.Cursor; len(a.steps) == 0 && c != 0 && !isTick(s, c) {
		a.add(P2, c, []shower{a.cursor()}, "the cursor stands at %s, which is no tick of %s", stamp(c), s)
	}
}

// inForce says of each step which schedules were in force, walking back from the cursor.
func (a *audit) inForce() {
	s, current := a.schedule, true
	for i := len(a.steps) - 1; i >= 0; i-- {
		k := &a.steps[i]
		k.before, k.after, k.current = s, s, current
		if k.row == nil || !k.row.replaces() {
			continue
		}
		current = false
		s = nil
		if !k.anew && (k.row.Prev != 0 || k.row.Note != "") { // else the old schedule had no more ticks
			var err error
			if s, err = jobs.ParseScheduleFor(a.entry.Job, k.row.Note, ""); err != nil {
				s = nil
				a.add(Books, k.row.At, []shower{k}, "what the schedule before %s was cannot be read, its ticks cannot be recomputed: %v", stamp(k.row.At), err)
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
func (a *audit) ran(k step) {
	s := k.before
	if s == nil {
		return
	}
	a.ticks++
	var tick int64
	if k.run != nil {
		tick = k.run.Tick
	} else {
		tick = k.row.Tick
	}
	switch want := tickAfter(s, tick); {
	case tick != k.prev:
		a.add(P2, max(tick, k.prev), []shower{k}, "%s fills the step from %s, which is another tick", k, stamp(k.prev))
	case !isTick(s, tick):
		a.add(P2, tick, []shower{k}, "%s: %s is no tick of %s", k, stamp(tick), s)
	case k.next != want:
		a.add(P2, tick, []shower{k}, "%s: the tick after it is %s, and the cursor went to %s", k, stamp(want), stamp(k.next))
	}
}

// span checks a row of ticks that did not run: that these were all ticks of their time, that they were
// due when they were recorded, and that the reason is one that the job's policies know.
func (a *audit) span(k step) {
	r := k.row
	if s := k.before; s != nil {
		a.ticks += r.Count
		n, last := count(s, r.Tick, r.Until)
		switch want := tickAfter(s, r.Until); {
		case r.Tick != k.prev:
			a.add(P2, r.Until, []shower{k}, "%s begins at another tick, %s", k, stamp(r.Tick))
		case !isTick(s, r.Tick):
			a.add(P2, r.Until, []shower{k}, "%s: %s is no tick of %s", k, stamp(r.Tick), s)
		case n != r.Count || last != r.Until:
			a.add(P2, r.Until, []shower{k}, "%s: up to %s the schedule %s has %d ticks, the last of them at %s", k, stamp(r.Until), s, n, stamp(orNever(last)))
		case k.next != want:
			a.add(P2, r.Until, []shower{k}, "%s: the tick after the last of them is %s, and the cursor went to %s", k, stamp(want), stamp(k.next))
		}
	}
	switch {
	case r.Outcome.Ran():
		a.add(P2, r.Until, []shower{k}, "%s: what ran is recorded run by run", k)
	case r.Until > r.At:
		a.add(P2, r.Until, []shower{k}, "%s was recorded before the last of them was due", k)
	case r.Reason == "" || outcomeOf[r.Reason] != 0 && outcomeOf[r.Reason] != r.Outcome:
		a.add(P2, r.Until, []shower{k}, "%s: %q is no reason for that", k, r.Reason)
	case k.current && !possible(a.def, r.Reason):
		a.add(P2, r.Until, []shower{k}, "%s: with the job's policies nothing is %s for %q", k, r.Outcome, r.Reason)
	}
}

var outcomeOf = map[string]jobs.Outcome{
	ReasonLate: jobs.OutcomeMissed, ReasonCatchUpMax: jobs.OutcomeMissed, ReasonStartWithin: jobs.OutcomeMissed, ReasonFailover: jobs.OutcomeMissed,
	ReasonOverlap: jobs.OutcomeSkipped, ReasonUpstream: jobs.OutcomeSkipped, ReasonPaused: jobs.OutcomePaused,
}

// possible says whether a definition's policies can lead to a reason.
func possible(d jobs.Definition, reason string) bool {
	switch reason {
	case ReasonLate:
		return d.CatchUp != jobs.CatchUpAll
	case ReasonCatchUpMax:
		return d.CatchUp == jobs.CatchUpAll
	case ReasonStartWithin:
		return d.StartWithin > 0
	case ReasonOverlap:
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
func (a *audit) turn(k step) {
	r := k.row
	switch r.Reason {
	case ReasonReplacedDef:
		a.replaced(k)
	case ReasonRewound:
		switch {
		case k.next >= k.prev || r.Count != 0 || r.Tick != r.Next:
			a.add(P2, r.At, []shower{k}, "a cursor that was set back leads to %s", stamp(k.next))
		case k.after != nil && !isTick(k.after, k.next):
			a.add(P2, r.At, []shower{k}, "the cursor was set back to %s, which is no tick of %s", stamp(k.next), k.after)
		}
	default:
		a.add(P2, r.At, []shower{k}, "%s: %q is no reason for that", k, r.Reason)
	}
}

// replaced checks that a new definition left none of the old one's ticks behind and began in its own
// future: it neither fires for the past nor passes over a tick.
func (a *audit) replaced(k step) {
	r := k.row
	// Where the schedule is the same, a tick that is due goes on.
	stays := r.Count == 0 && k.prev == k.next && k.prev != never &&
		(k.before == nil || k.after == nil || k.before.String() == k.after.String())
	if s := k.before; s != nil {
		a.ticks += r.Count
		rest := k.prev // the first tick of the old schedule that was not recorded
		if r.Count > 0 {
			rest = tickAfter(s, r.Until)
		}
		n, last := count(s, r.Tick, r.Until)
		switch {
		case k.prev != never && !isTick(s, k.prev):
			a.add(P2, r.At, []shower{k}, "the cursor stood at %s, which was no tick of %s", stamp(k.prev), s)
		case r.Count > 0 && (n != r.Count || last != r.Until || r.Tick != k.prev):
			a.add(P2, r.At, []shower{k}, "%s: up to %s the schedule %s had %d ticks, the last of them at %s", k, stamp(r.Until), s, n, stamp(orNever(last)))
		case rest <= r.At && !stays:
			a.add(P2, r.At, []shower{k}, "the definition was replaced at %s, and the tick %s before that is not accounted for", stamp(r.At), stamp(rest))
		}
	}
	if s := k.after; s != nil {
		latest := max(r.At+skewMost, r.Until, r.Prev)
		switch {
		case k.next != never && !isTick(s, k.next):
			a.add(P2, r.At, []shower{k}, "the new definition began at %s, which is no tick of %s", stamp(k.next), s)
		case k.next <= r.At && !stays:
			a.add(P2, r.At, []shower{k}, "the new definition began at %s, before it was stored", stamp(k.next))
		case r.Prev != 0 && k.next > tickAfter(s, latest):
			a.add(P2, r.At, []shower{k}, "the new definition began at %s and passed over the tick %s", stamp(k.next), stamp(tickAfter(s, latest)))
		}
	}
}
