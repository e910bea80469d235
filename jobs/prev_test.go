package jobs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"pgregory.net/rapid"
)

var mirrored = []string{"*/5 * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 31 12 *", "15 1-3 * 3,10 0", "0 12 13 * 5",
	"59 59 23 31 * *", "* * * * * *", "H H * * *", "H/20 H(0-3)/2 * * *", "H H H H H", "@hourly", "@yearly",
	"@every 90m", "@every 7777777ms", "@every 8760h"}

// Prev is the mirror of Next: between a tick and its neighbour there is none.
func TestPrevMirrorsNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.SampledFrom(zonesWithHistory).Draw(t, "zone")
		s := parseFor(t, rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name"), rapid.SampledFrom(mirrored).Draw(t, "expr"), place.name)
		near, err := time.Parse(layout, place.near)
		if err != nil {
			t.Fatal(err)
		}
		at := near.Add(time.Duration(rapid.Int64Range(-72*3600e9, 72*3600e9).Draw(t, "off")))
		if rapid.Bool().Draw(t, "anywhere") {
			at = time.Unix(rapid.Int64Range(-5e10, 5e10).Draw(t, "at"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		}
		if rapid.IntRange(0, 3).Draw(t, "at a tick") == 0 {
			at = s.Next(at)
		}
		next, prev := s.Next(at), s.Prev(at)
		if !next.After(at) || !prev.Before(at) {
			t.Fatalf("%s: %v is not between %v and %v", s, at.UTC(), prev, next)
		}
		if got := s.Prev(next); got.After(at) || !s.Next(got).Equal(next) {
			t.Fatalf("%s: Prev(%v) is %v, asked beside %v", s, next, got, at.UTC())
		}
		if got := s.Next(prev); got.Before(at) || !s.Prev(got).Equal(prev) {
			t.Fatalf("%s: Next(%v) is %v, asked beside %v", s, prev, got, at.UTC())
		}
		want := []time.Time{prev}
		if next = s.Next(prev); next.Equal(at) { // itself a tick
			want, next = append(want, next), s.Next(next)
		}
		if got := s.Between(prev, next, 5); !slices.Equal(got, want) {
			t.Fatalf("%s: from %v to %v there are %v, want %v", s, prev, next, got, want)
		}
	})
}

func TestPrevFarFromToday(t *testing.T) {
	first, last := time.Date(1, 1, 1, 1, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	for _, expr := range []string{"@hourly", "@every 1h"} {
		s := parse(t, expr, "")
		for name, when := range map[string]time.Time{"just after": last.Add(1), "10000": last.AddDate(1, 0, 0), "most": time.Unix(1<<60, 0)} {
			if got := s.Prev(when); !got.Equal(last) {
				t.Errorf("%s, %s: %v", expr, name, got)
			}
		}
		for name, when := range map[string]time.Time{"first": first, "before": first.AddDate(-5000, 0, 0), "least": time.Unix(-1<<60, 0)} {
			if got := s.Prev(when); !got.IsZero() {
				t.Errorf("%s, %s: %v", expr, name, got)
			}
		}
		if got := s.Prev(first.Add(1)); !got.Equal(first) {
			t.Errorf("%s: just after the first: %v", expr, got)
		}
	}
	for _, zone := range []string{"Asia/Tokyo", "America/Los_Angeles"} { // their year 1 begins elsewhere
		s := parse(t, "0 0 1 1 *", zone)
		if got := s.Prev(s.Next(first)); !got.IsZero() {
			t.Errorf("%s: before the first there is %v", zone, got)
		}
	}
}

func TestBetween(t *testing.T) {
	s := parse(t, "0 */6 * * *", "")
	day := at(t, "2026-03-01T00:00:00Z")
	for _, c := range []struct {
		from, before string
		most, want   int
	}{
		{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 100, 4}, // from counts, before does not
		{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00.001Z", 100, 5},
		{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 3, 3},
		{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 0, 0},
		{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", 100, 0},
		{"2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z", 100, 0},
	} {
		got := s.Between(at(t, c.from), at(t, c.before), c.most)
		if len(got) != c.want || c.want > 0 && !got[0].Equal(day) {
			t.Errorf("%s to %s, at most %d: %v", c.from, c.before, c.most, got)
		}
	}
	if got := s.Between(at(t, "9999-12-31T12:00:00Z"), time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC), 100); len(got) != 2 {
		t.Errorf("at the end of time: %v", got)
	}
}

func TestNote(t *testing.T) {
	for _, c := range []struct{ expr, zone, tick, want string }{
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", jobs.NoteGap},
		{"0 3 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", ""}, // its own time
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", jobs.NoteGap},
		{"0 * * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", ""}, // an interval
		{"30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00Z", ""},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", jobs.NoteFold},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", jobs.NoteFold},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", jobs.NoteFold},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", ""},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00:00Z", ""},
		{"0 9 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", jobs.NoteGap}, // stands in for a day
		{"0 9 * * *", "UTC", "2026-03-29T09:00:00Z", ""},
		{"@every 30m", "Europe/Berlin", "2026-10-25T00:30:00Z", ""}, // goes by no wall clock
	} {
		s := parse(t, c.expr, c.zone)
		tick := at(t, c.tick)
		if !s.Next(tick.Add(-1)).Equal(tick) {
			t.Errorf("%s: %s is no tick", s, c.tick)
		}
		if got := s.Note(tick); got != c.want {
			t.Errorf("%s: note of %s is %q, want %q", s, c.tick, got, c.want)
		}
	}
}
