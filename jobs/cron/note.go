package cron

import (
	"fmt"
	"math"
	"strings"
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
	case s.every > 0 || s.zone == time.UTC:
		return ""
	case s.fixed:
		return "fixed times: one that is left out runs right after the gap, one that comes twice runs once"
	default:
		return "an interval: nothing runs for an hour that is left out, one that comes twice runs through twice"
	}
}

// crontabYears is how many years the calendar takes to come back, but for the years that are divisible by 100.
const crontabYears = 28

// CrontabWords returns in words how crontab(5) of Vixie cron and cronie reads the same text, where that gives other days; "" where it
// does not, and for a text that crontab(5) does not have. There a day field that begins with a star is not restricted, with a step
// too.
func (s *Schedule) CrontabWords() string {
	fields := strings.Fields(s.text)
	if len(fields) != 5 || s.resolved != "" || s.cal.monthDays != (monthDays{}) || strings.Contains(s.text, "?") {
		return ""
	}
	theirs := s.cal
	theirs.eitherDay = fields[2][0] != '*' && fields[4][0] != '*'
	if theirs.eitherDay == s.cal.eitherDay || s.cal.sameDays(&theirs) {
		return ""
	}
	if theirs.eitherDay {
		return "in crontab(5) either day field is enough, because neither begins with a star; here both must match"
	}
	return "in crontab(5) both day fields must match, because one begins with a star; here either is enough"
}

// sameDays reports whether two calendars have the same days.
func (c *calendar) sameDays(other *calendar) bool {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	for day := first; day < first+366*crontabYears; day++ {
		if c.matchesDay(day) != other.matchesDay(day) {
			return false
		}
	}
	return true
}
