package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// never is the cursor of a schedule that has no more ticks: after all instants.
const never = math.MaxInt64

func orNever(ms int64) int64 {
	if ms == 0 {
		return never
	}
	return ms
}

// step is one recorded step of a job's cursor: a row, or a run in flight.
type step struct {
	era        int
	prev, next int64
	row        *ledger.Row
	run        *ledger.Run
	// The schedules in force before and after the step, nil where unknown. They differ only where
	// the step replaces the definition.
	before, after *jobs.Schedule
	anew          bool // a chain begins here, see stepsOf
	// current: the stored definition was already in force, so its policies apply.
	current bool
}

// turns reports whether a range sets the cursor anew, beside recording ticks.
func turns(r *ledger.Row) bool {
	return r.Ranged && r.Outcome == jobs.OutcomeSuperseded
}

// follows reports whether the row is of an upstream's tick; a range of such ticks has no prev.
func follows(r *ledger.Row) bool {
	return r.Reason == ledger.ReasonUpstream || r.Ranged && r.Prev == 0 || !r.Ranged && r.Trigger == jobs.TriggerAfter.String()
}

// replaces reports whether the row ends a definition; its Note has the ended definition's schedule.
func replaces(r *ledger.Row) bool { return turns(r) && r.Reason == ledger.ReasonReplacedDef }

// eras are the stretches of the chain in which time only advances; each is given by its first
// instant.
type eras []int64

// of finds the era to which a step from prev belongs: the last era that begins at or before prev. A
// step of no era lies before the recorded chain.
func (e eras) of(prev int64) (int, bool) {
	for era, begin := range slices.Backward(e) {
		if begin <= prev {
			return era, true
		}
	}
	return 0, false
}

// stepsOf returns the steps recorded in a job's books, in their order. A step that replaces a
// definition or sets the cursor back may lead back in time; it begins an era. Ranges have the order
// of their steps; a run's row has the place where the run ended. Runs of an upstream's ticks, runs
// by hand and further attempts fill no step. Where a follower got a schedule, a chain begins:
// earlier rows are left out.
func stepsOf(e ledger.Entry, rows []ledger.Row, open []ledger.Run) []step {
	known := eras{orNever(e.Base)}
	var ranges, runs []step
	place := func(list []step, k step) []step {
		if era, ok := known.of(k.prev); ok {
			k.era = era
			list = append(list, k)
		}
		return list
	}
	followed := false
	for i := range rows {
		r := &rows[i]
		k := step{prev: orNever(r.Prev), next: orNever(r.Next), row: r}
		switch {
		case turns(r):
			if k.anew = replaces(r) && r.Prev == 0 && r.Note == "" && (followed || i == 0); k.anew {
				known, ranges, runs = eras{never}, nil, nil
			}
			k.era = len(known) - 1
			if ranges = append(ranges, k); k.next < k.prev {
				known = append(known, k.next)
			}
		case follows(r):
			followed = true
		case r.Ranged:
			ranges = place(ranges, k)
		case r.Prev != 0:
			runs = place(runs, k)
		}
	}
	for i := range open {
		if l := &open[i]; l.Job == e.Job && l.Prev != 0 && l.Trigger != jobs.TriggerAfter.String() {
			runs = place(runs, step{prev: l.Prev, next: orNever(l.Next), run: l})
		}
	}
	all := slices.Concat(ranges, runs)
	slices.SortStableFunc(all, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.era, b.era), cmp.Compare(a.prev, b.prev))
	})
	return all
}

// closes checks that each step begins where the step before ended, from the base to the cursor.
func (c *bookCheck) closes() {
	at, before := orNever(c.entry.Base), any(baseOf(c.entry))
	for _, k := range c.steps {
		switch {
		case k.anew:
		case k.prev > at:
			c.add(P2, k.prev, []any{before, k}, "gap: nothing recorded from %s to %s (%s)", stamp(at), stamp(k.prev), k)
		case k.prev < at:
			c.add(P2, at, []any{before, k}, "overlap: %s begins at %s, the step before it ended at %s", k, stamp(k.prev), stamp(at))
		}
		at, before = k.next, k
	}
	if cursor := orNever(c.entry.Cursor); at != cursor {
		c.add(P2, max(at, cursor), []any{before, cursorOf(c.entry)}, "the chain ends at %s, the cursor stands at %s", stamp(at), stamp(cursor))
	}
}

func stamp(ms int64) string {
	if ms == never {
		return "never"
	}
	return time.UnixMilli(ms).UTC().Format(spec.TimeLayout)
}
