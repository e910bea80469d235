package cron

import (
	"math"
	"time"
)

// Prev returns the last tick before an instant, strictly, in UTC and whole milliseconds. The zero time means that there is
// none since the year 1. Prev(Next(t)) <= t, and Next(Prev(t)) >= t.
func (s *Schedule) Prev(before time.Time) time.Time {
	tick := s.prev(s.bounds.end(s.unmoved(before)))
	if tick.Before(s.bounds.From) {
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

// Count returns the number of ticks t with from <= t < before, and the last one (the zero time without one). Its cost grows
// with the days between the two, not with the ticks.
func (s *Schedule) Count(from, before time.Time) (n int, last time.Time) {
	n, last = s.countUnmoved(s.unmoved(from), s.unmoved(before))
	return n, s.later(last)
}

// countUnmoved is Count without the offset.
func (s *Schedule) countUnmoved(from, before time.Time) (n int, last time.Time) {
	from, before = s.bounds.start(from), s.bounds.end(before)
	if s.every > 0 {
		n, ms := s.countEvery(ceilMilli(from), ceilMilli(before))
		if n == 0 {
			return 0, time.Time{}
		}
		return n, time.UnixMilli(ms).UTC()
	}
	end := ceilSecond(before)
	at := ceilSecond(from)
	var lastAt int64
	for at < end {
		p := s.periodAt(at)
		wall := s.firstWall(p, at)
		if s.firesAtStart(p, at) {
			n, lastAt = n+1, p.start
			wall = p.start + p.offset + 1
		}
		stop := min(p.end, end)
		if k, lastWall := s.cal.count(wall, stop+p.offset); k > 0 {
			n, lastAt = n+k, lastWall-p.offset
		}
		at = p.end
	}
	if n == 0 {
		return 0, time.Time{}
	}
	return n, unixUTC(lastAt)
}

// ceilSecond returns the first whole second at or after t, inside the years 1 to 9999.
func ceilSecond(t time.Time) int64 {
	sec := t.Unix()
	if t.Nanosecond() > 0 {
		sec++
	}
	return min(max(sec, minSecond), maxSecond+1)
}

// ceilMilli is ceilSecond in milliseconds.
func ceilMilli(t time.Time) int64 {
	return floorMilli(t.Add(-time.Nanosecond)) + 1
}
