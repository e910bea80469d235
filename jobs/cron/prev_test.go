package cron_test

import (
	"slices"
	"testing"
	"time"

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
			t.Fatalf("%s: Prev(%v) is %v, asked at %v", s, next, got, at.UTC())
		}
		if got := s.Next(prev); got.Before(at) || !s.Prev(got).Equal(prev) {
			t.Fatalf("%s: Next(%v) is %v, asked at %v", s, prev, got, at.UTC())
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

// The first tick may be in the year 1, the last in the year 9999.
func TestFarFromToday(t *testing.T) {
	first, last := time.Date(1, 1, 1, 1, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	for _, expr := range []string{"@hourly", "@every 1h"} {
		s := parse(t, expr, "")
		for _, c := range []struct{ at, prev, next time.Time }{
			{time.Unix(-1<<60, 0), time.Time{}, first},
			{first.Add(-time.Millisecond), time.Time{}, first},
			{first, time.Time{}, first.Add(time.Hour)},
			{first.Add(1), first, first.Add(time.Hour)},
			{last.Add(1), last, time.Time{}},
			{time.Unix(1<<60, 0), last, time.Time{}},
		} {
			if prev, next := s.Prev(c.at), s.Next(c.at); !prev.Equal(c.prev) || !next.Equal(c.next) {
				t.Errorf("%s: around %v are %v and %v, want %v and %v", expr, c.at, prev, next, c.prev, c.next)
			}
		}
	}
	for _, zone := range []string{"Asia/Tokyo", "America/Los_Angeles"} { // their year 1 begins elsewhere
		s := parse(t, "0 0 1 1 *", zone)
		if got := s.Prev(s.Next(first)); !got.IsZero() {
			t.Errorf("%s: before the first there is %v", zone, got)
		}
	}
}
