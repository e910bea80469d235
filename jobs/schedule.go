package jobs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// MaxScheduleLen is the greatest length of a schedule expression, in bytes.
const MaxScheduleLen = 256

// The instants a schedule looks at, in seconds since 1970: the years 1 to 9999.
const (
	minSecond = -62135596800
	maxSecond = 253402300799
)

// zoneReach bounds how far the wall clock can be set back or forth, in seconds. The
// largest steps on record are the 24 hours of a country that crosses the date line.
const zoneReach = 48 * 3600

// Schedule says when the ticks of a job are. It is immutable and a pure function of its
// text and the zone's rules.
type Schedule struct {
	text  string
	every int64 // milliseconds; 0 for a calendar schedule
	cal   calendar
	zone  *time.Location
	fixed bool // names fixed times; see the package comment on daylight saving
}

// ParseSchedule reads a schedule; zone may be empty, which is UTC. It accepts 5 or 6
// fields, the descriptors, "@every d" with 100ms <= d <= 8760h, and a CRON_TZ= or TZ=
// prefix, which must agree with zone when both are given. What never fires is refused.
// It never panics, whatever the text.
func ParseSchedule(expr, zone string) (*Schedule, error) {
	if len(expr) > MaxScheduleLen {
		return nil, fmt.Errorf("schedule of %d bytes is longer than %d", len(expr), MaxScheduleLen)
	}
	prefix, rest, found, err := cutZone(expr)
	if err != nil {
		return nil, err
	}
	if found && zone != "" && prefix != zone {
		return nil, fmt.Errorf("schedule names the zone %s and the job names %s; keep one of the two",
			clip(prefix), clip(zone))
	}
	if found {
		zone = prefix
	}
	loc, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	s, err := parseBody(rest)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", clip(expr), err)
	}
	s.zone = loc
	if loc != time.UTC && s.every == 0 {
		s.text = "CRON_TZ=" + loc.String() + " " + s.text
	}
	return s, nil
}

// parseBody reads an expression without its zone.
func parseBody(expr string) (*Schedule, error) {
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
	cal, fixed, err := parseFields(fields)
	if err != nil {
		return nil, err
	}
	return &Schedule{text: text, cal: cal, fixed: fixed}, nil
}

// String returns the expression with single spaces, and with a CRON_TZ= prefix unless
// the zone is UTC or has no effect. ParseSchedule(s.String(), "") is the same schedule.
func (s *Schedule) String() string { return s.text }

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

// fresh returns the first wall second, from the instant at on, that may hold a tick of
// the period: for fixed times the hour that is repeated is behind it already.
func (s *Schedule) fresh(p period, at int64) int64 {
	from := at + p.offset
	if s.fixed && p.changedBefore(at) {
		from = max(from, s.reached(p))
	}
	return from
}

// jumpFires reports whether at is the first instant of a period that began by setting
// the wall clock forward over (or onto) a fixed time, which then fires there.
func (s *Schedule) jumpFires(p period, at int64) bool {
	if !s.fixed || at != p.start {
		return false
	}
	wall, ok := s.cal.next(s.reached(p))
	return ok && wall <= p.start+p.offset
}

// period is a stretch of time with one offset: instants from start up to end.
type period struct {
	start, end int64 // seconds since 1970; the extreme values mean no bound
	offset     int64 // seconds east of UTC
}

func (p period) changedBefore(at int64) bool {
	return p.start != math.MinInt64 && at-p.start < zoneReach
}

func (s *Schedule) periodAt(at int64) period {
	p := period{start: math.MinInt64, end: math.MaxInt64}
	if s.zone == time.UTC {
		return p
	}
	t := time.Unix(at, 0).In(s.zone)
	_, offset := t.Zone()
	p.offset = int64(offset)
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= at {
		// For years beyond the zone's table, Go 1.26 ends each after 365 days, so that the
		// last day of a leap year lies after its period. No rule changes a clock on it.
		p.end = (floorDiv(at, daySeconds) + 1) * daySeconds
	}
	return p
}

// reached returns the first wall second that no instant before p has come to. It looks at
// one change of the clock only: no zone on record has two within zoneReach.
func (s *Schedule) reached(p period) int64 {
	return p.start + s.periodAt(p.start-1).offset
}

func unixUTC(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
