package cron

import (
	"math"
	"time"
)

// maxZoneStep bounds the steps of a wall clock, in seconds. The largest on record are the 24 hours of a country that crosses
// the date line.
const maxZoneStep = 48 * 3600

// firstWall returns the first wall second, from the instant at on, that may be a tick of the period. For fixed times it is
// after the repeated hour, which has fired already.
func (s *Schedule) firstWall(p period, at int64) int64 {
	from := at + p.offset
	if s.fixed && p.changedBefore(at) {
		from = max(from, s.wallReached(p))
	}
	return from
}

// firstWallOf returns firstWall of the period's start. Only the tick of firesAtStart is earlier on the wall clock.
func (s *Schedule) firstWallOf(p period) int64 {
	if p.start == math.MinInt64 {
		return math.MinInt64
	}
	return s.firstWall(p, p.start)
}

// firesAtStart reports whether at is the first instant of a period that began by setting the wall clock forward over (or
// onto) a fixed time, which fires then.
func (s *Schedule) firesAtStart(p period, at int64) bool {
	if !s.fixed || at != p.start {
		return false
	}
	wall, ok := s.cal.next(s.wallReached(p))
	return ok && wall <= p.start+p.offset
}

// period is a stretch of time with one offset: instants from start up to end.
type period struct {
	start, end int64 // seconds since 1970; the extreme values mean no bound
	offset     int64 // seconds east of UTC
}

func (p period) changedBefore(at int64) bool {
	return p.start != math.MinInt64 && at-p.start < maxZoneStep
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

// wallReached returns the first wall second that no instant before p has reached. It considers one change of the clock: no
// zone on record has two within maxZoneStep.
func (s *Schedule) wallReached(p period) int64 {
	return p.start + s.periodAt(p.start-1).offset
}
