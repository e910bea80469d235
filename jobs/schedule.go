package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxScheduleLen is the greatest length of a schedule expression, in bytes, without its
// zone.
const maxScheduleLen = 256

// The instants a schedule looks at, in seconds since 1970: the years 1 to 9999 but for
// their very first, the zero time, which stands for no tick.
const (
	minSecond = -62135596799
	maxSecond = 253402300799
)

// Schedule says when the ticks of a job are. It is immutable and a pure function of its
// text and the zone's rules.
type Schedule struct {
	text     string
	resolved string // text with H replaced; empty when there is no H
	every    int64  // milliseconds; 0 for a calendar schedule
	cal      calendar
	zone     *time.Location
	fixed    bool // names fixed times; see the package comment on daylight saving
}

// ParseSchedule reads a schedule without H; zone may be empty, which is UTC. It accepts 5
// or 6 fields, the descriptors, "@every d" with 100ms <= d <= 8760h, and a CRON_TZ= or TZ=
// prefix, which must agree with zone when both are given. What never fires is refused.
// It never panics, whatever the text.
func ParseSchedule(expr, zone string) (*Schedule, error) {
	return ParseScheduleFor("", expr, zone)
}

// ParseScheduleFor reads a schedule as ParseSchedule does, and H too: what it stands for
// is decided by name, that of the job, for ever. Without a name H is refused.
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

// maxErrorLen bounds what is said of a schedule: six fields at fault, each full of bytes
// that are no text, would fill a screen.
const maxErrorLen = 400

func shorten(err error) error {
	if text := err.Error(); len(text) > maxErrorLen {
		return errors.New(text[:maxErrorLen-3] + "...")
	}
	return err
}

// parseBody reads an expression without its zone.
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

// String returns the expression with single spaces, and with a CRON_TZ= prefix unless
// the zone is UTC or has no effect. An H stays an H. What it returns is read back, with
// the same name, as the same schedule.
func (s *Schedule) String() string { return s.prefixed(s.text) }

// Resolved returns the expression as String does, but with what each H stands for. Its
// ticks are those of the schedule, save where clocks are set: an H with a step is an
// interval, and nothing but a star or H can say so.
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

// Zone returns the zone whose wall clock the schedule goes by. It has no effect on @every.
func (s *Schedule) Zone() *time.Location { return s.zone }

// Next returns the first tick after the instant given, strictly, in UTC and whole
// milliseconds. The zero time means never: no tick up to the end of the year 9999.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.every > 0 {
		return s.nextEvery(after)
	}
	// Unix rounds down, so the next whole second is after the instant in any case.
	at := max(min(after.Unix(), maxSecond), minSecond-1) + 1
	for at <= maxSecond {
		p := s.periodAt(at)
		if s.jumpFires(p, at) {
			return unixUTC(p.start)
		}
		wall, ok := s.cal.next(s.fresh(p, at))
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
