package cron_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// twin is the slow, obvious schedule: the sets of values of its six fields, and a walk
// with the wall clock in hand.
type twin struct {
	values   [6]valueSet // second minute hour day month weekday
	star     [6]bool
	special  [6][]func(date time.Time) bool // days that depend on the month
	interval bool
	zone     *time.Location
	bounds   twinBounds
}

type valueSet [60]bool

var lowest, highest = [6]int{0, 0, 0, 1, 1, 0}, [6]int{59, 59, 23, 31, 12, 6}

func (w *twin) matches(t time.Time) bool {
	if !w.bounds.hasDay(t) {
		return false
	}
	hour, minute, second := t.Clock()
	if !w.values[0][second] || !w.values[1][minute] || !w.values[2][hour] {
		return false
	}
	_, month, date := t.Date()
	if !w.values[4][month] {
		return false
	}
	day, weekday := w.values[3][date] || w.specialDay(3, t), w.values[5][t.Weekday()] || w.specialDay(5, t)
	if w.star[3] || w.star[5] {
		return day && weekday
	}
	return day || weekday
}

func (w *twin) specialDay(field int, t time.Time) bool {
	y, m, d := t.Date()
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return slices.ContainsFunc(w.special[field], func(is func(time.Time) bool) bool { return is(date) })
}

// wallClock is what a zone's clock shows at one instant after the other.
type wallClock struct {
	start, step int64 // seconds; instants are start, start+step and so on
	shows       []int64
}

func newWallClock(zone *time.Location, start, before, step int64) wallClock {
	c := wallClock{start: start, step: step}
	for sec := start; sec < before; sec += step {
		_, offset := time.Unix(sec, 0).In(zone).Zone()
		c.shows = append(c.shows, sec+int64(offset))
	}
	return c
}

// repeats are the wall times that the clock shows more than once.
func (c wallClock) repeats() map[int64]bool {
	times := make(map[int64]int, len(c.shows))
	out := map[int64]bool{}
	for _, wall := range c.shows {
		if times[wall]++; times[wall] > 1 {
			out[wall] = true
		}
	}
	return out
}

// ticks walks along the clock and keeps the ticks from an instant on, and for each whether
// it stands in for a time that was jumped over. A fixed time is due at the first instant at
// which the wall clock, at its highest so far, has come to it.
func (w *twin) ticks(c wallClock, from int64) (out []int64, gaps []bool) {
	high := c.shows[0]
	for i, wall := range c.shows {
		sec, due, gap := c.start+int64(i)*c.step, false, false
		if w.interval {
			due = w.matches(time.Unix(wall, 0).UTC())
		}
		for ; high < wall; high += c.step {
			if reached := high + c.step; !w.interval && w.matches(time.Unix(reached, 0).UTC()) {
				due, gap = true, gap || reached < wall
			}
		}
		if due && sec >= from && w.bounds.hasInstant(sec*1000) {
			out, gaps = append(out, sec), append(gaps, gap)
		}
	}
	return out, gaps
}

// moved returns the ticks (seconds) that are inside of a stretch of time (seconds) after the offset of the bounds has moved
// them, in milliseconds, and the index of the first.
func (b twinBounds) moved(ticks []int64, from, before int64) (first int, out []int64) {
	for _, sec := range ticks {
		switch ms := sec*1000 + b.plus; {
		case ms < from*1000:
			first++
		case ms < before*1000:
			out = append(out, ms)
		}
	}
	return first, out
}

// compare holds Next, Prev, Between and Count against the ticks, in milliseconds, of a stretch of time, in seconds.
func compare(t fataler, s *cron.Schedule, from, before int64, want []int64) {
	t.Helper()
	start, end := time.Unix(from, 0), time.Unix(before, 0)
	when := start.Add(-time.Nanosecond)
	for i, ms := range want {
		if when = s.Next(when); !when.Equal(time.UnixMilli(ms)) || when.Location() != time.UTC {
			t.Fatalf("%s: tick %d from %d on is %v, want %v", s, i, from, when, time.UnixMilli(ms).UTC())
		}
	}
	if when = s.Next(when); !when.IsZero() && when.Before(end) {
		t.Fatalf("%s: Next finds one tick too many: %v", s, when)
	}
	when = end
	for i, ms := range slices.Backward(want) {
		if when = s.Prev(when); !when.Equal(time.UnixMilli(ms)) || when.Location() != time.UTC {
			t.Fatalf("%s: going back from %d, tick %d is %v, want %v", s, before, i, when, time.UnixMilli(ms).UTC())
		}
	}
	if when = s.Prev(when); !when.Before(start) {
		t.Fatalf("%s: Prev finds one tick too many: %v", s, when)
	}
	for _, most := range []int{-1, 0, 1, len(want) / 2, len(want), len(want) + 1} {
		got, first := s.Between(start, end, most), want[:max(0, min(most, len(want)))]
		if !slices.EqualFunc(got, first, func(a time.Time, b int64) bool { return a.UnixMilli() == b }) {
			t.Fatalf("%s: at most %d from %d to %d are %v, want %v", s, most, from, before, got, first)
		}
	}
	n, last := s.Count(start, end)
	if n != len(want) || n > 0 && last.UnixMilli() != want[n-1] || n == 0 && !last.IsZero() {
		t.Fatalf("%s: Count from %d to %d is %d up to %v, want %d: %v", s, from, before, n, last, len(want), want)
	}
}

// TestScheduleAgreesWithItsTwin compares everything that a schedule answers with the walk, on the days around a change of clocks.
func TestScheduleAgreesWithItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, near, step := drawSchedule(t)
		reach := 60 * 60 * step
		if step == 60 {
			reach = 26 * 3600
		}
		from, before := near-rapid.Int64Range(0, reach/60).Draw(t, "before")*60, near+rapid.Int64Range(1, reach/60).Draw(t, "after")*60
		const lead = 30 * 3600 // long enough to know how high the wall clock has been, before the offset
		clock := newWallClock(w.zone, from-lead-mostPlus, before+lead, step)
		ticks, gaps := w.ticks(clock, from-mostPlus)
		first, want := w.bounds.moved(ticks, from, before)
		compare(t, s, from, before, want)
		repeated := clock.repeats()
		for i, ms := range want {
			note := ""
			switch {
			case gaps[first+i]:
				note = cron.NoteGap
			case repeated[clock.shows[(ticks[first+i]-clock.start)/step]]:
				note = cron.NoteFold
			}
			if got := s.Note(time.UnixMilli(ms)); got != note {
				t.Fatalf("%s: note of %v is %q, want %q", s, time.UnixMilli(ms).UTC(), got, note)
			}
		}
	})
}

// iterate counts with Next.
func iterate(s *cron.Schedule, from, before time.Time) (n int, last time.Time) {
	for when := s.Next(from.Add(-time.Nanosecond)); !when.IsZero() && when.Before(before); when = s.Next(when) {
		n, last = n+1, when
	}
	return n, last
}

// Count agrees with Next over long stretches, where the walk would be too slow, and for
// bounds that are no whole seconds.
func TestCountAgreesWithNext(t *testing.T) {
	exprs := []string{"*/5 * * * *", "30 2 * * *", "0 0 29 2 *", "*/7 */3 * * *", "15 1-3 * 3,10 0", "0 12 13 * 5",
		"@hourly", "@every 90m", "@every 7777777ms"}
	rapid.Check(t, func(t *rapid.T) {
		s := parse(t, rapid.SampledFrom(exprs).Draw(t, "expr"), rapid.SampledFrom(zonesWithHistory).Draw(t, "zone").name)
		nanos := rapid.SampledFrom([]int64{0, 0, 1, 999_999, 500_000_000, 999_999_999})
		from := time.Unix(rapid.Int64Range(-4e9, 4e9).Draw(t, "from"), nanos.Draw(t, "from ns"))
		if rapid.Bool().Draw(t, "at a tick") {
			from = s.Next(from)
		}
		before := from.Add(time.Duration(rapid.Int64Range(-10, 120*86400).Draw(t, "for"))*time.Second +
			time.Duration(nanos.Draw(t, "before ns")))
		if rapid.Bool().Draw(t, "to a tick") {
			before = s.Next(before)
		}
		n, last := s.Count(from, before)
		if wantN, wantLast := iterate(s, from, before); n != wantN || !last.Equal(wantLast) {
			t.Fatalf("%s from %v to %v: Count is %d up to %v, Next gives %d up to %v", s, from, before, n, last, wantN, wantLast)
		}
	})
}
