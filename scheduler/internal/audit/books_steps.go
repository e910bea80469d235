package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// never is where a cursor stands whose schedule has no more ticks: behind all instants.
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
	run        *ledger.Lease
	// The schedules in force before and after the step, nil where they are not known. They differ
	// only where the step replaces the definition.
	before, after *jobs.Schedule
	anew          bool // a chain begins here, see stepsOf
	// current says that the stored definition was in force already, so that its policies apply.
	current bool
}

// turns says that a range is no answer for ticks alone: it sets the cursor anew.
func turns(r *ledger.Row) bool {
	return r.Ranged && r.Outcome == jobs.OutcomeSuperseded
}

// follows says that the row is of a tick of the job that this one followed; a range of those has no prev.
func follows(r *ledger.Row) bool {
	return r.Reason == ledger.ReasonUpstream || r.Ranged && r.Prev == 0 || !r.Ranged && r.Trigger == jobs.TriggerAfter.String()
}

// replaces says that the row ends a definition; its Note has the schedule of that one.
func replaces(r *ledger.Row) bool { return turns(r) && r.Reason == ledger.ReasonReplacedDef }

// eras are stretches of the chain in which it leads on in time; each is where it begins.
type eras []int64

// of finds the era to which a step from prev belongs: the last that begins at or before it. One that
// belongs to none lies before the recorded chain.
func (e eras) of(prev int64) (int, bool) {
	for era, begin := range slices.Backward(e) {
		if begin <= prev {
			return era, true
		}
	}
	return 0, false
}

// stepsOf returns the steps that the books of a job show, in their order. A step of a replaced
// definition, or of a cursor set back, may lead back; it begins an era. Ranges stand in the order of
// their steps; a run's row stands where the run ended. Runs of another job's ticks, of a person, and
// further attempts fill no step. Where a job that followed another got a schedule, a chain begins:
// what was before is left out.
func stepsOf(e ledger.Entry, rows []ledger.Row, open []ledger.Lease) []step {
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

// closes checks that the steps follow upon each other, from the base to the cursor.
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
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
