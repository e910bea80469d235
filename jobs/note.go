package jobs

import (
	"math"
	"time"
)

// What Note says of a tick.
const (
	// NoteGap: the tick stands in for fixed times that the clock jumped over.
	NoteGap = "gap"
	// NoteFold: the tick's wall time comes twice that day.
	NoteFold = "fold"
)

// Note says what is odd about a tick of the schedule: NoteGap when it stands in for one
// or more fixed times that the clock jumped over just before it, NoteFold when its wall
// time comes twice that day, else nothing. The ticks of @every go by no wall clock.
func (s *Schedule) Note(tick time.Time) string {
	if s.every > 0 {
		return ""
	}
	at := tick.Unix()
	p := s.periodAt(at)
	wall := at + p.offset
	if at == p.start && s.fixed {
		if missed, ok := s.cal.next(s.reached(p)); ok && missed < wall {
			return NoteGap
		}
	}
	if p.start != math.MinInt64 && wall < s.reached(p) {
		return NoteFold
	}
	if p.end != math.MaxInt64 && wall >= p.end+s.periodAt(p.end).offset {
		return NoteFold
	}
	return ""
}

// FixedTimes reports whether the schedule names fixed times, each of which fires once
// however the clock is set. If not it is an interval, which goes by the wall clock or, as
// @every, by none.
func (s *Schedule) FixedTimes() bool { return s.fixed }
