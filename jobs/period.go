package jobs

import (
	"math"
	"time"
)

// zoneReach bounds how far the wall clock can be set back or forth, in seconds. The
// largest steps on record are the 24 hours of a country that crosses the date line.
const zoneReach = 48 * 3600

// fresh returns the first wall second, from the instant at on, that may hold a tick of
// the period: for fixed times the hour that is repeated is behind it already.
func (s *Schedule) fresh(p period, at int64) int64 {
	from := at + p.offset
	if s.fixed && p.changedBefore(at) {
		from = max(from, s.reached(p))
	}
	return from
}

// freshStart is fresh of the period's own start: no tick of it but jumpFires comes earlier
// on the wall clock.
func (s *Schedule) freshStart(p period) int64 {
	if p.start == math.MinInt64 {
		return math.MinInt64
	}
	return s.fresh(p, p.start)
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
