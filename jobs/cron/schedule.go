package cron

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// maxScheduleLen bounds a schedule expression without its zone, in bytes.
const maxScheduleLen = 256

// The range of ticks, in seconds since 1970: the years 1 to 9999 without the first second, which is the zero time.
const (
	minSecond = -62135596799
	maxSecond = 253402300799
)

// Schedule defines the ticks of a job. It is immutable, and a pure function of its text and the zone's rules.
type Schedule struct {
	text     string
	resolved string // text with H replaced; empty when there is no H
	every    int64  // milliseconds; 0 for a calendar schedule
	cal      calendar
	zone     *time.Location
	fixed    bool // has fixed times; see "Daylight saving" in the package comment
	bounds   Bounds
}

// Parse parses a schedule without H. It accepts 5 or 6 fields, the descriptors, "@every d" with 100ms <= d <= 8760h,
// and a prefix CRON_TZ= or TZ=. zone "" is UTC; with a prefix too, both must be equal. Behind the fields it accepts what a job
// has as settings of their own: "except 2026-12-24,2027-05-01 only 2026-12-01..2027-12-31 from T until T", with RFC 3339 instants.
// "plus 17s" moves all ticks, after the other bounds. A schedule without any tick is refused. It never panics, whatever the text.
func Parse(expr, zone string) (*Schedule, error) {
	return ParseFor("", expr, zone)
}

// ParseFor parses a schedule as Parse does, and also H and "jitter 30s", whose values follow from the job's name.
// Without a name they are refused.
func ParseFor(name, expr, zone string) (*Schedule, error) {
	s, b, err := parseUnbounded(name, expr, zone)
	if err == nil {
		err = inSchedule(expr, s.bound(b))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ParseWithin parses the schedule of a job, whose bounds are settings of the job. Bounds in the text are refused.
func ParseWithin(name, expr, zone string, within Bounds) (*Schedule, error) {
	s, b, err := parseUnbounded(name, expr, zone)
	switch {
	case err != nil:
		return nil, err
	case b.IsSet():
		return nil, inSchedule(expr, fmt.Errorf("has%s; write bounds as except, only, start_at, end_at and jitter of the job", spec.Clip(b.text())))
	}
	within.From, within.Until = within.From.UTC(), within.Until.UTC()
	if within.Jitter >= time.Millisecond {
		within.plus = jitterOf(name, within.Jitter)
	}
	if err := s.bound(within); err != nil {
		return nil, inSchedule(expr, err)
	}
	return s, nil
}

// parseUnbounded parses a schedule without its bounds, which it returns.
func parseUnbounded(name, expr, zone string) (*Schedule, Bounds, error) {
	prefix, rest, found, err := cutZone(expr)
	if err != nil {
		return nil, Bounds{}, err
	}
	fields, b, err := cutBounds(name, strings.Fields(rest))
	if err != nil {
		return nil, b, inSchedule(expr, err)
	}
	text := strings.Join(fields, " ")
	if n := len(text); n > maxScheduleLen {
		return nil, b, fmt.Errorf("schedule of %d bytes is longer than %d", n, maxScheduleLen)
	}
	loc, err := agreedZone(prefix, zone, found)
	if err != nil {
		return nil, b, err
	}
	s, err := parseBody(name, fields)
	if err != nil {
		return nil, b, inSchedule(expr, err)
	}
	s.text, s.zone = text, loc
	return s, b, nil
}

// inSchedule names the schedule in an error; nil stays nil.
func inSchedule(expr string, err error) error {
	if err == nil {
		return nil
	}
	return shorten(fmt.Errorf("schedule %q: %w", spec.Clip(expr), err))
}

// maxErrorLen bounds the error about a schedule, in bytes.
const maxErrorLen = 400

func shorten(err error) error {
	if text := err.Error(); len(text) > maxErrorLen {
		return errors.New(text[:maxErrorLen-3] + "...")
	}
	return err
}

// parseBody parses the fields of an expression, to a schedule without text and zone.
func parseBody(name string, fields []string) (*Schedule, error) {
	if len(fields) == 0 {
		return nil, errors.New(`is empty; write 5 fields such as "*/5 * * * *", or "@every 90s"`)
	}
	if strings.EqualFold(fields[0], "@every") {
		every, err := parseEvery(fields[1:])
		return &Schedule{every: every}, err
	}
	if strings.HasPrefix(fields[0], "@") {
		meaning, ok := descriptors[strings.ToLower(strings.Join(fields, " "))]
		if !ok {
			return nil, fmt.Errorf("descriptor is not known; use one of %s, or @every with a duration", descriptorList)
		}
		fields = strings.Fields(meaning)
	}
	return parseFields(name, fields)
}

// String returns the expression with single spaces, with a CRON_TZ= prefix unless the zone is UTC or has no effect, and with the
// bounds of its ticks behind it. H stays H. ParseFor parses the result, with the same name, to the same schedule.
func (s *Schedule) String() string { return s.prefixed(s.text, s.bounds.offsetText(false)) }

// Resolved returns the expression as String does, with the value of each H, and "plus 17s" for a jitter. Its ticks are the ticks of the
// schedule, except at a change of the clock: an H with a step is an interval, and its values are fixed times.
func (s *Schedule) Resolved() string {
	return s.prefixed(cmp.Or(s.resolved, s.text), s.bounds.offsetText(true))
}

func (s *Schedule) prefixed(text, offset string) string {
	text += s.bounds.daysText() + offset
	if s.zone == time.UTC || s.every > 0 && s.cal.days == nil {
		return text
	}
	return "CRON_TZ=" + s.zone.String() + " " + text
}

// Offset returns by how much jitter moves all ticks; 0 without jitter.
func (s *Schedule) Offset() time.Duration { return s.bounds.plus }

// Bounds returns what the text of String has behind the fields, such as "except 2026-12-24"; "" for nothing.
func (s *Schedule) Bounds() string { return strings.TrimPrefix(s.bounds.text(), " ") }

// Zone returns the zone of the schedule. It has no effect on @every, except that a day of Except and Only is one of the zone.
func (s *Schedule) Zone() *time.Location { return s.zone }

// Next returns the first tick after an instant, strictly, in UTC and whole milliseconds. The zero time means that there is
// none up to the end of the year 9999.
func (s *Schedule) Next(after time.Time) time.Time { return s.later(s.nextUnmoved(s.unmoved(after))) }

// nextUnmoved is Next without the offset.
func (s *Schedule) nextUnmoved(after time.Time) time.Time {
	if first := s.bounds.From.Add(-time.Nanosecond); !s.bounds.From.IsZero() && after.Before(first) {
		after = first
	}
	tick := s.next(after)
	if end := s.bounds.Until; !end.IsZero() && tick.After(end) {
		return time.Time{}
	}
	return tick
}

// next is nextUnmoved without start and end.
func (s *Schedule) next(after time.Time) time.Time {
	if s.every > 0 {
		return s.nextEvery(after)
	}
	// Unix rounds down, so the next whole second is after the instant in any case.
	at := max(min(after.Unix(), maxSecond), minSecond-1) + 1
	for at <= maxSecond {
		p := s.periodAt(at)
		if s.firesAtStart(p, at) {
			return unixUTC(p.start)
		}
		wall, ok := s.cal.next(s.firstWall(p, at))
		if !ok && p.end > at+maxZoneStep {
			return time.Time{}
		}
		if tick := wall - p.offset; ok && tick < p.end {
			if tick > maxSecond {
				return time.Time{}
			}
			return unixUTC(tick)
		}
		at = p.end // where the clock may go back to a day that has ticks
	}
	return time.Time{}
}

func unixUTC(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
