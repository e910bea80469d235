package jobs

import (
	"fmt"
	"time"
)

// NoteWords returns in words what a change of clocks does at a tick; "" for a tick without a Note.
func (s *Schedule) NoteWords(tick time.Time) string {
	at := s.unmoved(tick).In(s.zone)
	start, _ := at.ZoneBounds()
	switch s.Note(tick) {
	case NoteGap:
		before := start.Add(-time.Nanosecond)
		_, offset := before.Zone()
		was := start.In(time.FixedZone("", offset))
		layout := "15:04"
		if was.Day() != start.In(s.zone).Day() {
			layout = "2006-01-02 15:04"
		}
		return fmt.Sprintf("gap: the clock goes from %s to %s; this tick stands in", was.Format(layout), at.Format(layout))
	case NoteFold:
		which := "first"
		if secondTime(at, start) {
			which = "second"
		}
		words := fmt.Sprintf("fold: %s comes twice; this is the %s", at.Format("15:04"), which)
		if s.fixed {
			words += ", the other does not run"
		}
		return words
	default:
		return ""
	}
}

// secondTime reports whether the clock has shown the time of a tick before: start is when the clock was last set.
func secondTime(at, start time.Time) bool {
	if start.IsZero() {
		return false
	}
	_, was := start.Add(-time.Nanosecond).Zone()
	_, is := at.Zone()
	return at.Sub(start) < time.Duration(was-is)*time.Second
}

// ClockWords returns in words what becomes of the ticks when the clock is set; "" for @every and in UTC, where none is.
func (s *Schedule) ClockWords() string {
	switch {
	case s.every > 0 || s.zone.String() == defaultTimeZone:
		return ""
	case s.fixed:
		return "fixed times: one that is left out runs right after the gap, one that comes twice runs once"
	default:
		return "an interval: nothing runs for an hour that is left out, one that comes twice runs through twice"
	}
}
