package cron

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// The bounds of "@every d".
const (
	minEvery = 100 * time.Millisecond
	maxEvery = 8760 * time.Hour
)

const (
	minMilli = minSecond * 1000
	maxMilli = maxSecond*1000 + 999
)

// durationForm matches a duration; if refused all the same, the duration is too long.
var durationForm = regexp.MustCompile(`^[+-]?(\d+d$|(\d+d)?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$)`)

// parseEvery parses the fields after @every. The result is in milliseconds.
func parseEvery(fields []string) (int64, error) {
	if len(fields) != 1 {
		return 0, errors.New("@every takes one duration, such as @every 90s")
	}
	d, err := spec.ParseDuration(fields[0])
	switch {
	case err != nil && durationForm.MatchString(fields[0]):
		return 0, fmt.Errorf("%q is outside %v to %v", spec.Clip(fields[0]), minEvery, maxEvery)
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration; use numbers with d, h, m, s or ms, such as 1h30m or 2d", spec.Clip(fields[0]))
	case d < minEvery || d > maxEvery:
		return 0, fmt.Errorf("%v is outside %v to %v", d, minEvery, maxEvery)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%v is not a whole number of milliseconds", d)
	}
	return d.Milliseconds(), nil
}

func (s *Schedule) nextEvery(after time.Time) time.Time {
	for ms := floorMilli(after); ; {
		tick := (floorDiv(ms, s.every) + 1) * s.every
		if tick > maxMilli {
			return time.Time{}
		}
		from, end := s.daysFrom(floorDiv(tick, 1000))
		if from*1000 <= tick && tick < end*1000 {
			return time.UnixMilli(tick).UTC()
		}
		if from > maxSecond {
			return time.Time{}
		}
		ms = from*1000 - 1
	}
}

func (s *Schedule) prevEvery(before time.Time) time.Time {
	for ms := ceilMilli(before); ; {
		tick := floorDiv(ms-1, s.every) * s.every
		if tick < minMilli {
			return time.Time{}
		}
		from, end := s.daysTo(floorDiv(tick, 1000))
		if from*1000 <= tick && tick < end*1000 {
			return time.UnixMilli(tick).UTC()
		}
		if end <= minSecond {
			return time.Time{}
		}
		ms = end * 1000
	}
}

// floorMilli returns the last whole millisecond at or before t, kept inside the years 1
// to 9999 and one millisecond before them.
func floorMilli(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec < minSecond:
		return minMilli - 1
	case sec > maxSecond:
		return maxMilli
	default:
		return sec*1000 + int64(t.Nanosecond()/1e6)
	}
}

// countEvery counts the multiples of the interval from the first bound up to the second,
// both in milliseconds.
func (s *Schedule) countEvery(from, before int64) (n int, last int64) {
	for at := from; at < before; {
		start, end := s.daysFrom(floorDiv(at, 1000))
		if k, ms := s.countMultiples(max(at, start*1000), min(before, end*1000)); k > 0 {
			n, last = n+k, ms
		}
		at = end * 1000
	}
	return n, last
}

// countMultiples is countEvery without regard to days.
func (s *Schedule) countMultiples(from, before int64) (n int, last int64) {
	first := floorDiv(from-1, s.every) + 1
	end := floorDiv(before-1, s.every)
	if end < first {
		return 0, 0
	}
	return int(end - first + 1), end * s.every
}

// daysFrom returns the next seconds at or after at, from one up to another, whose days in the zone are left by except and only; at is
// inside the years 1 to 9999. Without any, both are beyond these years.
func (s *Schedule) daysFrom(at int64) (from, end int64) {
	if s.cal.days == nil {
		return at, maxSecond + 1
	}
	for at <= maxSecond {
		p := s.periodAt(at)
		span, ok := s.cal.days.next(floorDiv(at+p.offset, daySeconds))
		if from = max(span.first*daySeconds-p.offset, at); ok && from < p.end {
			return from, min((span.last+1)*daySeconds-p.offset, p.end, maxSecond+1)
		}
		if !ok && p.end > at+maxZoneStep {
			break
		}
		at = p.end
	}
	return maxSecond + 1, maxSecond + 2
}

// daysTo is daysFrom for the last seconds at or before at. Without any, both are before the year 1.
func (s *Schedule) daysTo(at int64) (from, end int64) {
	if s.cal.days == nil {
		return minSecond, at + 1
	}
	for at >= minSecond {
		p := s.periodAt(at)
		span, ok := s.cal.days.prev(floorDiv(at+p.offset, daySeconds))
		if end = min((span.last+1)*daySeconds-p.offset, at+1); ok && end > p.start {
			return max(span.first*daySeconds-p.offset, p.start, minSecond), end
		}
		if !ok && p.start < at-maxZoneStep {
			break
		}
		at = p.start - 1
	}
	return minSecond - 2, minSecond - 1
}

// floorDiv rounds towards minus infinity; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
