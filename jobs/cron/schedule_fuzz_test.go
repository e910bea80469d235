package cron_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/escapement/escapement/jobs/cron"
)

var garbageSeed = flag.Uint64("cron.seed", 1, "seed of TestParseScheduleOfGarbage")

// Whatever the text: no panic, no endless search, and an accepted schedule makes headway and
// can be written down and read again.
func FuzzParseSchedule(f *testing.F) {
	for _, expr := range []string{
		"*/5 * * * *", "0 0 9 * * MON-FRI", "@hourly", "@every 1h30m", "CRON_TZ=Europe/Berlin 30 2 * * *", "H 0 * * *",
		"H/15 H(9-16) H * MON-FRI", "H(0-5)/2,H H H/7 H(jan-mar) H", "H H 31 H *", "0 0 30 2 *", "0 0 29 2 */2", "5/20,1-3 ? 1,15 jan-mar 0",
		"0 9 L,L-3 * *", "0 9 15W,LW,1 2 *", "0 9 * * 5#2,FRIL,1", "0 9 H,L * 7#5",
		"0 9 * * * except 2026-12-24..2027-01-02,2027-05-01", "@every 7h only 2026-12-24 except 2026-12-25", "* * * * * from 2026-03-29T00:30:00Z until 2026-03-29T02:00:00Z",
		"0 9 * * * jitter 30s", "@every 7h only 2026-12-24 jitter 24h", "H * * * * plus 17.25s", "* * * * * jitter 1us", "* * * * * jitter 9999999h", "* * * * * plus -1s",
		// Text on which robfig's parser panics (a zone with no space after it), or answers a
		// schedule whose search for the next instant takes seconds (a field without a value).
		"TZ=0", "TZ=", "CRON_TZ=UTC", "TZ=UTC\t* * * * *", ", * * * * *", "* , * * * *", "* * , * * *", "*-x * * * *",
		"0/9223372036854775807 * * * *", "@every 0s", "@every -1ns", "@every 2562047h47m16.854775807s",
	} {
		f.Add(expr, "", int64(1_774_746_000))
		f.Add(expr, "Europe/Berlin", int64(-62135596801))
	}
	f.Fuzz(func(t *testing.T, expr, zone string, sec int64) {
		s, err := cron.ParseFor("fuzzed", expr, zone)
		if err != nil {
			if s != nil || err.Error() == "" || len(err.Error()) > 400 {
				t.Fatalf("error %q with %v", err, s)
			}
			return
		}
		again, err := cron.ParseFor("fuzzed", s.String(), "")
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q reads back as %v, %v", s, again, err)
		}
		if wrong := wrongWith(s, "fuzzed"); wrong != "" {
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

// TestParseScheduleOfGarbage puts expressions together from parts, many of them wrong. Each is accepted and then works, or is
// refused in one short line of text.
func TestParseScheduleOfGarbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(*garbageSeed, 0))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	element := func() string {
		text := pick("*", "*", "*", "H", "H", "1", "2", "5", "1-3", "2-5", "H(1-3)", "H(2-6)", "0", "59", "?", "L", "L-3", "LW", "15W", "5#2", "5L", "32W", "h", "5-1", "mon", "JAN", "H()", "-1", "",
			"99999999999999999999", "٣", "\x00", "\u2028", "\xff")
		return text + pick("", "", "", "/2", "/5", "/0", "/", ",1", ",", "-")
	}
	accepted := 0
	for n := range 3000 {
		var fields []string
		for range pick("5", "5", "5", "5", "6", "6", "4")[0] - '0' {
			fields = append(fields, element())
		}
		expr := pick("", "", "", "", "", "", "TZ=Europe/Berlin ", "CRON_TZ=UTC ", "TZ=", "TZ=Local ", "CRON_TZ=\x1b ") +
			pick(strings.Join(fields, " "), strings.Join(fields, " "), strings.Join(fields, " "), "@daily", "@every 90s", "@every ", "@every 1ns", "@") +
			pick("", "", "", "", "", "", "", "", "", "", " except 2026-03-28", " only 2026-03-28..2026-03-30,2100-01-01", " except", " only 2026-02-30", " from 2026-03-29T01:30:00Z until 2026-04-01T00:00:00+02:00",
				" until 2026-03-29", " jitter 30s", " plus 1500ms", " jitter 24h except 2026-03-28", " jitter x", " plus 25h", " except 2026-03-29 only 2026-03-29")
		if at := rng.IntN(len(expr) + 1); rng.IntN(5) == 0 {
			expr = expr[:at] + pick("\n", "\xff", "é", "💥", ",", "/", "=", "@", "H", " ", "\x1b[2J", strings.Repeat("1,", 200)) + expr[at:]
		}
		s, err := cron.ParseFor("settle-orders", expr, "")
		wrong := ""
		if err == nil {
			accepted++
			wrong = wrongWith(s, "settle-orders")
		} else if text := err.Error(); s != nil || len(text) > 400 || strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsRune(text, '\u2028') {
			wrong = fmt.Sprintf("is refused with %q", text)
		}
		if wrong != "" {
			t.Errorf("expression %d of -cron.seed=%d: %q %s", n, *garbageSeed, expr, wrong)
		}
	}
	if accepted < 300 || accepted > 2400 {
		t.Errorf("%d of 3000 are accepted: the mix should have both kinds", accepted)
	}
}

// wrongWith returns the fault of an accepted schedule, or "".
func wrongWith(s *cron.Schedule, name string) string {
	again, err := cron.ParseFor(name, s.String(), "")
	if err != nil || again.String() != s.String() || again.Resolved() != s.Resolved() || again.FixedTimes() != s.FixedTimes() {
		return fmt.Sprintf("%q reads back as %v, %v", s, again, err)
	}
	plain, err := cron.Parse(s.Resolved(), "")
	if err != nil || strings.Contains(s.Resolved(), "H") && !strings.HasPrefix(s.Resolved(), "CRON_TZ=") {
		return fmt.Sprintf("%q, resolved: %v", s.Resolved(), err)
	}
	if w := s.Words(); w == "" || strings.ContainsFunc(w, unicode.IsControl) || strings.TrimSuffix(w, " (H taken from the job's name)") != plain.Words() {
		return fmt.Sprintf("its words are %q, resolved %q", w, plain.Words())
	}
	for _, sec := range []int64{1_774_746_000, -62_135_596_800, 253_402_300_799, 4_102_444_800} {
		at := time.Unix(sec, 0)
		next, prev := s.Next(at), s.Prev(at)
		if !next.IsZero() && (!next.After(at) || s.Prev(next).After(at)) || !prev.IsZero() && (!prev.Before(at) || !next.IsZero() && s.Next(prev).Before(at)) {
			return fmt.Sprintf("around %v are %v and %v", at.UTC(), prev, next)
		}
		if other := again.Next(at); !other.Equal(next) {
			return fmt.Sprintf("after %v comes %v, read back %v", at.UTC(), next, other)
		}
		end := at.Add(36 * time.Hour)
		n, last := s.Count(at, end)
		if got := s.Between(at, end, 3); len(got) != min(n, 3) || n > 0 && n <= 3 && !got[n-1].Equal(last) {
			return fmt.Sprintf("from %v on there are %d up to %v, the first %v", at.UTC(), n, last, got)
		}
	}
	return ""
}
