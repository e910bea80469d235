package scheduler

import (
	"time"
)

// stampFormat is RFC 3339 in UTC with milliseconds.
const stampFormat = "2006-01-02T15:04:05.000Z"

// Stamp is an instant that prints as RFC 3339, UTC, with milliseconds.
type Stamp time.Time

// String formats the instant as "2006-01-02T15:04:05.000Z".
func (s Stamp) String() string { return time.Time(s).UTC().Format(stampFormat) }

// MarshalText writes the text of String.
func (s Stamp) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads any RFC 3339 text.
func (s *Stamp) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err == nil {
		*s = Stamp(t)
	}
	return err
}

// stampOf is an instant (ms) as a Stamp; nil for 0.
func stampOf(ms int64) *Stamp {
	if ms == 0 {
		return nil
	}
	s := Stamp(time.UnixMilli(ms))
	return &s
}

func stamps(times []time.Time) []Stamp {
	all := make([]Stamp, len(times))
	for i, t := range times {
		all[i] = Stamp(t)
	}
	return all
}
