package ops

import (
	"time"
)

// stampFormat is RFC 3339 in UTC with milliseconds.
const stampFormat = "2006-01-02T15:04:05.000Z"

// Stamp is an instant that prints as RFC 3339, UTC, with milliseconds.
type Stamp time.Time

// The first and last instants that RFC 3339 can write, and so that UnmarshalText can read.
var (
	firstStamp = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastStamp  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
)

// String formats the instant as "2006-01-02T15:04:05.000Z". An instant outside of the years 0 to 9999, which a damaged record may
// have, is the nearest one inside.
func (s Stamp) String() string {
	t := time.Time(s).UTC()
	switch {
	case t.Before(firstStamp):
		t = firstStamp
	case t.After(lastStamp):
		t = lastStamp
	}
	return t.Format(stampFormat)
}

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
