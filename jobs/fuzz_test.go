package jobs_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Whatever the text: no panic, no endless search, and what is accepted makes headway and
// can be written down and read again.
func FuzzParseSchedule(f *testing.F) {
	for _, expr := range []string{
		"*/5 * * * *", "0 0 9 * * MON-FRI", "@hourly", "@every 1h30m", "CRON_TZ=Europe/Berlin 30 2 * * *", "H 0 * * *",
		"H/15 H(9-16) H * MON-FRI", "H(0-5)/2,H H H/7 H(jan-mar) H", "H H 31 H *", "0 0 30 2 *", "0 0 29 2 */2", "5/20,1-3 ? 1,15 jan-mar 0",
		// Text on which robfig's parser panics (a zone with no space after it), or answers a
		// schedule whose search for the next instant takes seconds (a field without a value).
		"TZ=0", "TZ=", "CRON_TZ=UTC", "TZ=UTC\t* * * * *", ", * * * * *", "* , * * * *", "* * , * * *", "*-x * * * *",
		"0/9223372036854775807 * * * *", "@every 0s", "@every -1ns", "@every 2562047h47m16.854775807s",
	} {
		f.Add(expr, "", int64(1_774_746_000))
		f.Add(expr, "Europe/Berlin", int64(-62135596801))
	}
	f.Fuzz(func(t *testing.T, expr, zone string, sec int64) {
		s, err := jobs.ParseScheduleFor("fuzzed", expr, zone)
		if err != nil {
			if s != nil || err.Error() == "" || len(err.Error()) > 400 {
				t.Fatalf("error %q beside %v", err, s)
			}
			return
		}
		again, err := jobs.ParseScheduleFor("fuzzed", s.String(), "")
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q reads back as %v, %v", s, again, err)
		}
		if wrong := works(s, "fuzzed"); wrong != "" {
			t.Fatalf("%q: %s", s, wrong)
		}
		start := time.Unix(sec, 0)
		when := start
		for range 50 {
			next := s.Next(when)
			if other := again.Next(when); !other.Equal(next) {
				t.Fatalf("%q and what it reads back as differ after %v: %v and %v", s, when, next, other)
			}
			if next.IsZero() {
				return
			}
			if prev := s.Prev(next); !prev.IsZero() && (prev.After(when) || prev.Before(when) && when.After(start)) {
				t.Fatalf("%q: after %v comes %v, and before that %v", s, when, next, prev)
			}
			if !next.After(when) || next.Nanosecond()%1e6 != 0 || next.Location() != time.UTC || next.Year() > 9999 {
				t.Fatalf("%q: after %v comes %v", s, when, next)
			}
			when = next
		}
		if sec <= -62135596800 {
			return // Count begins with the year 1, as Next does
		}
		if n, last := s.Count(start.Add(time.Nanosecond), when); n != 49 || !last.Before(when) {
			t.Fatalf("%q: 50 ticks after %v up to %v, Count of the first 49 is %d", s, start, when, n)
		}
	})
}
