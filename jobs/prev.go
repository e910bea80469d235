package jobs

import (
	"math"
	"time"
)

// Prev returns the last tick before an instant, strictly, in UTC and whole milliseconds. The zero time means that there is
// none since the year 1. Prev(Next(t)) <= t, and Next(Prev(t)) >= t.
func (s *Schedule) Prev(before time.Time) time.Time {
	tick := s.prev(s.bounds.end(s.unmoved(before)))
	if tick.Before(s.bounds.from) {
		return time.Time{}
	}
	return s.later(tick)
}

// prev is Prev without start, end and offset.
func (s *Schedule) prev(before time.Time) time.Time {
	if s.every > 0 {
		return s.prevEvery(before)
	}
	at := ceilSecond(before) - 1
	for at >= minSecond {
		p := s.periodAt(at)
		wall, ok := s.cal.prev(at + p.offset)
		if !ok && p.start < at-maxZoneStep {
			return time.Time{}
		}
		if tick := wall - p.offset; ok && wall >= s.firstWallOf(p) {
			if tick < minSecond {
				return time.Time{}
			}
			return unixUTC(tick)
		}
		if p.start == math.MinInt64 {
			return time.Time{}
		}
		if s.firesAtStart(p, p.start) {
			return unixUTC(p.start)
		}
		at = p.start - 1
	}
	return time.Time{}
}

// Between returns the ticks t with from <= t < before, in order, at most most of them.
func (s *Schedule) Between(from, before time.Time, most int) []time.Time {
	var out []time.Time
	for tick := s.Next(from.Add(-time.Nanosecond)); len(out) < most; tick = s.Next(tick) {
		if tick.IsZero() || !tick.Before(before) {
			break
		}
		out = append(out, tick)
	}
	return out
}
