package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"
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
}

// ParseSchedule parses a schedule without H. It accepts 5 or 6 fields, the descriptors, "@every d" with 100ms <= d <= 8760h,
// and a prefix CRON_TZ= or TZ=. zone "" is UTC; with a prefix too, both must be equal. A schedule without any tick is refused.
// It never panics, whatever the text.
func ParseSchedule(expr, zone string) (*Schedule, error) {
	return ParseScheduleFor("", expr, zone)
}

// ParseScheduleFor parses a schedule as ParseSchedule does, and also H, whose value follows from the job's name. Without a
// name H is refused.
func ParseScheduleFor(name, expr, zone string) (*Schedule, error) {
	prefix, rest, found, err := cutZone(expr)
	if err != nil {
		return nil, err
	}
	if n := len(strings.TrimSpace(rest)); n > maxScheduleLen {
		return nil, fmt.Errorf("schedule of %d bytes is longer than %d", n, maxScheduleLen)
	}
	loc, err := agreedZone(prefix, zone, found)
	if err != nil {
		return nil, err
	}
	s, err := parseBody(name, rest)
	if err != nil {
		return nil, shorten(fmt.Errorf("schedule %q: %w", clip(expr), err))
	}
	s.zone = loc
	return s, nil
}

// maxErrorLen bounds the error about a schedule, in bytes.
const maxErrorLen = 400

func shorten(err error) error {
	if text := err.Error(); len(text) > maxErrorLen {
		return errors.New(text[:maxErrorLen-3] + "...")
	}
	return err
}

// parseBody parses an expression without its zone.
func parseBody(name, expr string) (*Schedule, error) {
	fields := strings.Fields(expr)
	if len(fields) == 0 {
		return nil, errors.New(`is empty; write 5 fields such as "*/5 * * * *", or "@every 90s"`)
	}
	text := strings.Join(fields, " ")
	if fields[0] == "@every" {
		every, err := parseEvery(fields[1:])
		return &Schedule{text: text, every: every}, err
	}
	if strings.HasPrefix(text, "@") {
		meaning, ok := descriptors[text]
		if !ok {
			return nil, fmt.Errorf("descriptor is not known; use one of %s, or @every with a duration", descriptorList)
		}
		fields = strings.Fields(meaning)
	}
	s, err := parseFields(name, fields)
	if err != nil {
		return nil, err
	}
	s.text = text
	return s, nil
}

// String returns the expression with single spaces, and with a CRON_TZ= prefix unless the zone is UTC or has no effect. H
// stays H. ParseScheduleFor parses the result, with the same name, to the same schedule.
func (s *Schedule) String() string { return s.prefixed(s.text) }

// Resolved returns the expression as String does, with the value of each H. Its ticks are those of the schedule, except at
// a change of the clock: an H with a step is an interval, and its values are fixed times.
func (s *Schedule) Resolved() string {
	if s.resolved == "" {
		return s.String()
	}
	return s.prefixed(s.resolved)
}

func (s *Schedule) prefixed(text string) string {
	if s.zone == time.UTC || s.every > 0 {
		return text
	}
	return "CRON_TZ=" + s.zone.String() + " " + text
}

// Zone returns the zone of the schedule. It has no effect on @every.
func (s *Schedule) Zone() *time.Location { return s.zone }

// Next returns the first tick after an instant, strictly, in UTC and whole milliseconds. The zero time means that there is
// none up to the end of the year 9999.
func (s *Schedule) Next(after time.Time) time.Time {
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
		if !ok {
			return time.Time{}
		}
		if tick := wall - p.offset; tick < p.end {
			if tick > maxSecond {
				return time.Time{}
			}
			return unixUTC(tick)
		}
		at = p.end
	}
	return time.Time{}
}

func unixUTC(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
