package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// schedule computes the ticks that are due up to the reading of the books or the end of the last
// node: from the job's schedule, or, for a follower, from the results of its upstreams' ticks.
func (t *trial) schedule() {
	bySchedule := make(map[string][]int64) // where only policies changed, a tick that is due goes on
	for _, v := range t.job.Versions {
		if v.Schedule == nil {
			continue
		}
		asks := t.scheduled(v)
		if v.Definition.Schedule != "" {
			text := v.Schedule.String()
			asks = slices.Compact(slices.Sorted(slices.Values(append(bySchedule[text], asks...))))
			bySchedule[text] = asks
		}
		t.asks = append(t.asks, asks)
	}
	if len(t.ups) > 0 {
		t.asks = append(t.asks, t.followed())
	}
	slices.SortFunc(t.due, func(a, b *tick) int { return a.at.Compare(b.at) })
}

func (t *trial) scheduled(v Version) []int64 {
	var asks []int64
	for _, at := range t.ticksIn(v.Certain, v.Schedule, 0) {
		d := t.expect(at)
		d.must = d.must || !at.After(t.Read)
		asks = append(asks, at.UnixMilli())
	}
	possible := v.Possible
	if t.job.Rewound { // the schedule of now has ticks before it was stored
		for _, other := range t.job.Versions {
			if other.Possible.From.Before(possible.From) && !other.Possible.From.IsZero() {
				possible.From = other.Possible.From
			}
		}
	}
	for _, at := range t.ticksIn(possible, v.Schedule, claim.AheadMax) {
		t.expect(at)
		asks = append(asks, at.UnixMilli())
	}
	slices.Sort(asks)
	return slices.Compact(asks)
}

// ticksIn returns the ticks in a span and up to ahead after it: such ticks may be granted ahead.
func (t *trial) ticksIn(s Span, of *jobs.Schedule, ahead time.Duration) (all []time.Time) {
	until := latest(t.Read, t.Ended).Add(ahead + 1) // a tick at the very instant is due
	if end := s.Until.Add(ahead); !s.Until.IsZero() && end.Before(until) {
		until = end
	}
	if s.From.IsZero() {
		return nil
	}
	for at := of.Next(s.From.Add(-1)); !at.IsZero() && at.Before(until); at = of.Next(at) {
		all = append(all, at)
	}
	return all
}

func (t *trial) expect(at time.Time) *tick {
	d := t.byTick[at.UnixMilli()]
	if d == nil {
		d = &tick{at: at, ready: at, soonest: at}
		t.byTick[at.UnixMilli()] = d
		t.due = append(t.due, d)
	}
	return d
}

// find returns the tick at an instant, nil when no version has it.
func (t *trial) find(at time.Time) *tick {
	if d := t.byTick[at.UnixMilli()]; d != nil && d.at.Equal(at) {
		return d
	}
	return nil
}

// cover returns the ticks of a row of several: ticks of one version, from the first to the last.
// Where more than one version fits, the row's count chooses.
func (t *trial) cover(first, last, count int64) []*tick {
	var best []int64
	for _, asks := range t.asks {
		lo, _ := slices.BinarySearch(asks, first)
		hi, _ := slices.BinarySearch(asks, last+1)
		if lo >= hi || asks[lo] != first || asks[hi-1] != last {
			continue
		}
		if best == nil || int64(hi-lo) == count {
			best = asks[lo:hi]
		}
	}
	ticks := make([]*tick, len(best))
	for i, ms := range best {
		ticks[i] = t.byTick[ms]
	}
	return ticks
}

// maxRuns returns the largest max_runs of the job's versions; 0 when a version has none.
func (t *trial) maxRuns() (most int) {
	for _, v := range t.job.Versions {
		if v.Definition.MaxRuns == 0 {
			return 0
		}
		most = max(most, v.Definition.MaxRuns)
	}
	return most
}

// finished reports whether the books end the job for its max_runs before an instant, with no later
// definition that continues it.
func (t *trial) finished(at time.Time) bool {
	done := false
	for i := range t.books.Rows {
		switch r := &t.books.Rows[i]; {
		case !turns(r):
		case r.Reason == ledger.ReasonMaxRuns:
			done = done || !instant(r.Tick).After(at)
		case r.Next != 0 && !instant(r.Next).After(at):
			done = false
		}
	}
	return done
}

// ranTooOften checks that a job ran no more ticks than its max_runs.
func (t *trial) ranTooOften() {
	most, n := t.maxRuns(), 0
	for _, d := range t.due {
		if len(d.starts)+len(d.rows)+len(d.leases)+len(d.wholes)+len(d.opened) == 0 {
			continue
		}
		if n++; n > most && most > 0 && !t.job.Rewound {
			t.add(KindUnwanted, d.at, "tick %d of a job with max_runs %d was run", n, most)
			return
		}
	}
}

// boundedBy reports whether a row that ends a job for its max_runs can be true.
func (t *trial) boundedBy(row *ledger.Row) bool {
	return row.Reason == ledger.ReasonMaxRuns && t.job.any(func(d jobs.Definition) bool { return d.MaxRuns > 0 })
}
