package cron

import (
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/escapement/escapement/jobs/spec"
)

// maxJitter bounds Bounds.Jitter.
const maxJitter = 24 * time.Hour

// The words before an offset in a schedule's text: a bound from which the job's name chooses, and what the name chose.
const (
	jitterWord = "jitter"
	plusWord   = "plus"
)

// jitterOf returns the offset of a job's ticks, at or above 0 and below the jitter. It must never change, because stored schedules
// depend on it.
func jitterOf(name string, jitter time.Duration) time.Duration {
	return time.Duration(xxhash.Sum64String(name+"\x00jitter")%uint64(jitter.Milliseconds())) * time.Millisecond
}

// readJitter reads the value of jitter in the bounds.
func (b *Bounds) readJitter(name, value string) (err error) {
	if name == "" {
		return errors.New("needs the job's name, which decides the offset")
	}
	if b.Jitter, err = parseOffset(value, time.Millisecond); err == nil {
		b.plus = jitterOf(name, b.Jitter)
	}
	return err
}

// parseOffset parses a duration from least to maxJitter.
func parseOffset(text string, least time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; use a number with ms, s, m or h, such as 30s", spec.Clip(text))
	}
	return d, checkOffset(d, least)
}

func checkOffset(d, least time.Duration) error {
	switch {
	case d < least || d > maxJitter:
		return fmt.Errorf("%v is outside %v to %v", d, least, maxJitter)
	case d%time.Millisecond != 0:
		return fmt.Errorf("%v is not a whole number of milliseconds", d)
	}
	return nil
}

// offsetText returns the offset as cutBounds reads it, with a space before; "" for none.
func (b Bounds) offsetText(resolved bool) string {
	switch {
	case b.Jitter > 0 && !resolved:
		return " " + jitterWord + " " + b.Jitter.String()
	case b.plus > 0 || b.Jitter > 0:
		return " " + plusWord + " " + b.plus.String()
	}
	return ""
}

// later moves a tick by the offset. The zero time is none, and stays so.
func (s *Schedule) later(tick time.Time) time.Time {
	if tick.IsZero() || s.bounds.plus == 0 {
		return tick
	}
	if tick = tick.Add(s.bounds.plus); tick.After(lastTick) {
		return time.Time{}
	}
	return tick
}

// unmoved moves an instant back to where the fields have it. Instants after the last possible tick stay after the last tick that is not
// moved beyond it.
func (s *Schedule) unmoved(at time.Time) time.Time {
	if end := lastTick.Add(time.Nanosecond); at.After(end) {
		at = end
	}
	return at.Add(-s.bounds.plus)
}

// lastTick is the last instant of the year 9999 at which there can be a tick.
var lastTick = time.UnixMilli(maxMilli).UTC()
