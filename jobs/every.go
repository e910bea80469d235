package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"time"
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

// durationForm matches a duration; one that was refused all the same is too long.
var durationForm = regexp.MustCompile(`^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)

// parseEvery parses the fields after @every. The result is in milliseconds.
func parseEvery(fields []string) (int64, error) {
	if len(fields) != 1 {
		return 0, errors.New("@every takes one duration, such as @every 90s")
	}
	d, err := time.ParseDuration(fields[0])
	switch {
	case err != nil && durationForm.MatchString(fields[0]):
		return 0, fmt.Errorf("%q is outside %v to %v", clip(fields[0]), minEvery, maxEvery)
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration; use a number with ms, s, m or h, such as 1h30m", clip(fields[0]))
	case d < minEvery || d > maxEvery:
		return 0, fmt.Errorf("%v is outside %v to %v", d, minEvery, maxEvery)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%v is not a whole number of milliseconds", d)
	}
	return d.Milliseconds(), nil
}

func (s *Schedule) nextEvery(after time.Time) time.Time {
	tick := (floorDiv(floorMilli(after), s.every) + 1) * s.every
	if tick > maxMilli {
		return time.Time{}
	}
	return time.UnixMilli(tick).UTC()
}

func (s *Schedule) prevEvery(before time.Time) time.Time {
	tick := floorDiv(ceilMilli(before)-1, s.every) * s.every
	if tick < minMilli {
		return time.Time{}
	}
	return time.UnixMilli(tick).UTC()
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
	first := floorDiv(from-1, s.every) + 1
	end := floorDiv(before-1, s.every)
	if end < first {
		return 0, 0
	}
	return int(end - first + 1), end * s.every
}

// floorDiv rounds towards minus infinity; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
