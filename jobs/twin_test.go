package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"pgregory.net/rapid"
)

// twin is the slow, obvious schedule: the sets of values of its six fields, and a walk
// through every second with the wall clock in hand.
type twin struct {
	values [6]map[int]bool // second minute hour day month weekday
	star   [6]bool
	zone   *time.Location
}

var lowest, highest = [6]int{0, 0, 0, 1, 1, 0}, [6]int{59, 59, 23, 31, 12, 6}

func (w *twin) matches(t time.Time) bool {
	clock := [6]int{t.Second(), t.Minute(), t.Hour(), t.Day(), int(t.Month()), int(t.Weekday())}
	for _, i := range []int{0, 1, 2, 4} {
		if !w.values[i][clock[i]] {
			return false
		}
	}
	day, weekday := w.values[3][clock[3]], w.values[5][clock[5]]
	if w.star[3] || w.star[5] {
		return day && weekday
	}
	return day || weekday
}

// ticks walks from one instant to another. A fixed time is due at the first second at
// which the wall clock, at its highest so far, has come to it.
func (w *twin) ticks(from, before int64) []int64 {
	const lead = 30 * 3600 // long enough to know how high the wall clock has been
	wallAt := func(sec int64) int64 {
		_, offset := time.Unix(sec, 0).In(w.zone).Zone()
		return sec + int64(offset)
	}
	interval := w.star[1] || w.star[2]
	high := wallAt(from - lead)
	var out []int64
	for sec := from - lead + 1; sec < before; sec++ {
		wall, due := wallAt(sec), false
		if interval {
			due = w.matches(time.Unix(wall, 0).UTC())
		}
		for ; high < wall; high++ {
			due = due || !interval && w.matches(time.Unix(high+1, 0).UTC())
		}
		if due && sec >= from {
			out = append(out, sec)
		}
	}
	return out
}

// drawField draws the text of field i and the set it stands for.
func drawField(t *rapid.T, i int, few bool) (text string, values map[int]bool, star bool) {
	lo, hi := lowest[i], highest[i]
	values = make(map[int]bool)
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			values[v] = true
		}
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, "elements") {
		a := rapid.IntRange(lo, hi).Draw(t, "a")
		b := rapid.IntRange(a, hi).Draw(t, "b")
		step := rapid.IntRange(1, hi-lo+1).Draw(t, "step")
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if few {
			kind = 0
		}
		switch kind {
		case 0:
			parts = append(parts, fmt.Sprint(a))
			add(a, a, 1)
		case 1:
			parts = append(parts, fmt.Sprintf("%d-%d", a, b))
			add(a, b, 1)
		case 2:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", a, b, step))
			add(a, b, step)
		case 3:
			parts = append(parts, fmt.Sprintf("%d/%d", a, step))
			add(a, hi, step)
		case 4:
			parts = append(parts, fmt.Sprintf("*/%d", step))
			add(lo, hi, step)
			// A stepped star is a star for the clock fields; for the two day fields it
			// restricts, unless the step is 1.
			star = star || i < 3 || step == 1
		default:
			parts = append(parts, rapid.SampledFrom([]string{"*", "?"}).Draw(t, "star"))
			add(lo, hi, 1)
			star = true
		}
	}
	return strings.Join(parts, ","), values, star
}

// zonesWithHistory are drawn with instants beside which their clocks were set.
var zonesWithHistory = []struct{ name, near string }{
	{"UTC", "2026-02-28T12:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"America/New_York", "2031-11-02T06:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"}, // 44 minutes and 30 seconds
	{"America/St_Johns", "2006-10-29T02:31:00Z"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // a day left out
	{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"}, // a day twice
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},  // two hours
	{"Europe/Berlin", "2040-12-31T12:00:00Z"},     // Go misplaces the end of this year
	{"Australia/Sydney", "2041-01-01T00:00:00Z"},
	{"Europe/Dublin", "2027-01-01T00:00:00Z"}, // negative daylight saving
}

func drawSchedule(t *rapid.T) (*jobs.Schedule, *twin, time.Time) {
	place := rapid.SampledFrom(zonesWithHistory).Draw(t, "zone")
	near, err := time.Parse(layout, place.near)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(place.name)
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{zone: loc}
	var fields []string
	for i := range 6 {
		// Days and months are mostly free, else hardly a tick would fall into the walk.
		if i >= 3 && rapid.IntRange(0, 2).Draw(t, "free") > 0 {
			fields, w.star[i], w.values[i] = append(fields, "*"), true, map[int]bool{}
			for v := lowest[i]; v <= highest[i]; v++ {
				w.values[i][v] = true
			}
			continue
		}
		text, values, star := drawField(t, i, i < 3 && rapid.Bool().Draw(t, "few"))
		fields, w.values[i], w.star[i] = append(fields, text), values, star
	}
	expr := strings.Join(fields, " ")
	s, err := jobs.ParseSchedule(expr, place.name)
	if err != nil {
		if strings.Contains(err.Error(), "never fires") {
			t.Skip("such as 31 February")
		}
		t.Fatalf("%s: %v", expr, err)
	}
	return s, w, near
}

// Next and Count agree with the walk, on the days around a clock change.
func TestScheduleAgreesWithItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, near := drawSchedule(t)
		from := near.Unix() - rapid.Int64Range(0, 26*3600).Draw(t, "before")
		before := near.Unix() + rapid.Int64Range(1, 26*3600).Draw(t, "after")
		want := w.ticks(from, before)

		when := time.Unix(from, 0).Add(-time.Nanosecond)
		for i, sec := range want {
			if when = s.Next(when); when.Unix() != sec || when.Nanosecond() != 0 || when.Location() != time.UTC {
				t.Fatalf("%s: tick %d is %v, want %v", s, i, when, time.Unix(sec, 0).UTC())
			}
		}
		if when = s.Next(when); !when.IsZero() && when.Unix() < before {
			t.Fatalf("%s: one tick too many: %v", s, when)
		}
		n, last := s.Count(time.Unix(from, 0), time.Unix(before, 0))
		if n != len(want) || n > 0 && last.Unix() != want[n-1] || n == 0 && !last.IsZero() {
			t.Fatalf("%s: Count is %d up to %v, want %d: %v", s, n, last, len(want), want)
		}
	})
}

// iterate counts with Next.
func iterate(s *jobs.Schedule, from, before time.Time) (n int, last time.Time) {
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

func TestCountIsQuickOverYears(t *testing.T) {
	s := parse(t, "* * * * * *", "Europe/Berlin")
	from, before := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	n, last := s.Count(from, before)
	if want := int(before.Unix() - from.Unix()); n != want || !last.Equal(before.Add(-time.Second)) {
		t.Errorf("%d ticks up to %v, want %d", n, last, want)
	}
	if n, last = s.Count(before, from); n != 0 || !last.IsZero() {
		t.Errorf("backwards: %d up to %v", n, last)
	}
}

// In zones whose clocks are set at midnight or otherwise oddly, Next makes headway, and
// gives the same tick whatever instant of the gap before it is asked for.
func TestNextMakesHeadwayInOddZones(t *testing.T) {
	names := []string{"America/Havana", "America/Asuncion", "Asia/Beirut", "Asia/Amman", "Asia/Tehran", "Asia/Gaza",
		"Africa/Cairo", "Atlantic/Azores", "America/Scoresbysund", "Pacific/Easter", "America/Godthab", "Asia/Manila",
		"America/Juneau", "Pacific/Fakaofo", "Europe/Lisbon", "Asia/Riyadh", "Africa/El_Aaiun", "Australia/Eucla"}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		for _, expr := range []string{"0 0 * * *", "0 0 1 * *", "0 1 * * 0", "59 23 L * *", "0 */2 * * *", "30 0,12 * * *"} {
			expr = strings.Replace(expr, "L", "28-31", 1)
			s := parse(t, expr, name)
			for range 40 {
				when := time.Unix(rng.Int64N(8e9)-4e9, 0)
				seen := []time.Time{when}
				for range 30 {
					next := s.Next(when)
					if !next.After(when) {
						t.Fatalf("%s %s: after %v comes %v", expr, name, when, next)
					}
					// Asked from anywhere between the two, the answer is the same.
					between := when.Add(time.Duration(rng.Int64N(int64(next.Sub(when)))))
					if got := s.Next(between); !got.Equal(next) {
						t.Fatalf("%s %s: after %v comes %v, but after %v comes %v", expr, name, when, next, between, got)
					}
					when = next
					seen = append(seen, when)
				}
				if !slices.IsSortedFunc(seen, time.Time.Compare) {
					t.Fatalf("%s %s: not in order: %v", expr, name, seen)
				}
			}
		}
	}
}
