package jobs

import (
	"math"
	"time"
)

// Results of Schedule.Note.
const (
	// NoteGap means that the tick replaces fixed times that the clock jumped over.
	NoteGap = "gap"
	// NoteFold means that the tick's wall time comes twice on that day.
	NoteFold = "fold"
)

// Note returns NoteGap for a tick that replaces fixed times that the clock jumped over, NoteFold for a tick whose wall time
// comes twice on that day, else "". For @every it is "".
func (s *Schedule) Note(tick time.Time) string {
	if s.every > 0 {
		return ""
	}
	at := s.unmoved(tick).Unix()
	p := s.periodAt(at)
	wall := at + p.offset
	if at == p.start && s.fixed {
		if missed, ok := s.cal.next(s.wallReached(p)); ok && missed < wall {
			return NoteGap
		}
	}
	if p.start != math.MinInt64 && wall < s.wallReached(p) {
		return NoteFold
	}
	if p.end != math.MaxInt64 && wall >= p.end+s.periodAt(p.end).offset {
		return NoteFold
	}
	return ""
}

// FixedTimes reports whether the schedule has fixed times, each of which fires once whatever the clock does. Otherwise it is
// an interval, by the wall clock or, as @every, without one.
func (s *Schedule) FixedTimes() bool { return s.fixed }
