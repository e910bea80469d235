//go:build !race

package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// changingZones are the zones of which every change of the clock is tried, and how many
// there are at least: should rules be shortened or the search miss some, the test fails
// instead of trying less. Rules of law may still move a few, so some have room.
var changingZones = []struct {
	name        string
	since, till int // years, the second not included
	changes     int
}{
	{"Europe/Berlin", 2020, 2041, 42},
	{"America/New_York", 2020, 2041, 42},
	{"America/Sao_Paulo", 2010, 2041, 19}, // the last in February 2019
	{"Australia/Lord_Howe", 2020, 2041, 42},
	{"Africa/Cairo", 2020, 2041, 34},
	{"Asia/Tehran", 2010, 2041, 26}, // the last in 2022
	{"Pacific/Apia", 2010, 2041, 23},
	{"Africa/Casablanca", 2020, 2041, 40},
	{"America/St_Johns", 2010, 2041, 62},
	{"Europe/Dublin", 2020, 2041, 42},
	{"Antarctica/Troll", 2020, 2041, 42},
	{"Asia/Gaza", 2020, 2041, 40},
	{"America/Santiago", 2020, 2041, 42},
	{"Pacific/Chatham", 2020, 2041, 42},
	{"America/Havana", 2020, 2041, 42},
	{"Asia/Beirut", 2020, 2041, 42},
}

// changeCases are the schedules that go over each change. reach is how many hours to both
// sides are walked, by the minute or, with six fields, by the second.
var changeCases = []struct {
	expr  string
	reach int64
}{
	{"30 2 * * *", 26}, {"0 0 * * *", 26}, {"0,10,20,50 0-3 * * *", 26}, {"5/25 1,2 * * *", 26}, // fixed
	{"*/5 * * * *", 26}, {"*/30 2 * * *", 26}, {"15 */2 * * *", 26}, {"0-20/10 * * * *", 26}, // interval
	{"* * * * *", 4}, {"* 2 * * *", 26}, // wildcard
	{"30 1 * * 0", 26}, {"0 2,3 * * 5-6", 26}, {"45 2 13 * 0", 26}, {"30 0 28-31 3,10 *", 26}, // weekly and monthly
	{"*/20 * * * * *", 3}, {"30 30 2 * * *", 4}, {"10,40 0,59 0-3 * * *", 4}, {"59 59 * * * *", 3}, // with seconds
	{"H H * * *", 26}, {"H H(0-3) * * *", 26}, {"H H(1-2) * * H", 26}, {"H,H(0-29) 2,3 * * *", 26}, // H, fixed
	{"H/10 2 * * *", 26}, {"H H/3 * * *", 26}, {"H H(0-3)/2 * * *", 26}, {"H/7 H * * *", 26}, // H, interval
	{"H H H(1-3) * * *", 4}, {"H/15 H(0-4) H * * *", 4},
}

// twinOf reads an expression the obvious way. What H stands for is taken from the
// schedule, whether it is an interval from what was written.
func twinOf(t fataler, s *jobs.Schedule, expr string, zone *time.Location) *twin {
	t.Helper()
	written := strings.Fields(expr)
	fields := strings.Fields(strings.TrimPrefix(s.Resolved(), "CRON_TZ="+zone.String()+" "))
	if len(fields) == 5 {
		written, fields = append([]string{"0"}, written...), append([]string{"0"}, fields...)
	}
	w := &twin{zone: zone}
	for i, field := range fields {
		for element := range strings.SplitSeq(field, ",") {
			span, stepText, stepped := strings.Cut(element, "/")
			low, high, step := lowest[i], highest[i], 1
			if span != "*" {
				lowText, highText, ranged := strings.Cut(span, "-")
				low = number(t, lowText)
				if ranged {
					high = number(t, highText)
				} else if !stepped {
					high = low
				}
			}
			if stepped {
				step = number(t, stepText)
			}
			for v := low; v <= high; v += step {
				w.values[i][v] = true
			}
		}
		w.star[i] = field == "*"
	}
	for _, field := range written[1:3] {
		w.interval = w.interval || strings.Contains(field, "*") || strings.Contains(field, "H") && strings.Contains(field, "/")
	}
	return w
}

func number(t fataler, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// changesOf walks from one change of a zone's clock to the next. A look at the clock every
// half hour must count as many.
func changesOf(t fataler, zone *time.Location, from, before time.Time) (changes []int64) {
	t.Helper()
	offsetAt := func(at time.Time) int {
		_, offset := at.In(zone).Zone()
		return offset
	}
	for at := from; at.Before(before); {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(at) { // Go ends a leap year beyond its tables a day too early
			end = at.AddDate(0, 0, 1)
		}
		if at = end; at.Before(before) && offsetAt(at) != offsetAt(at.Add(-time.Second)) {
			changes = append(changes, at.Unix())
		}
	}
	seen := 0
	for at := from; at.Before(before); at = at.Add(30 * time.Minute) {
		if offsetAt(at) != offsetAt(at.Add(-30*time.Minute)) {
			seen++
		}
	}
	if seen != len(changes) {
		t.Fatalf("%s: %d changes by its bounds, %d by its offsets", zone, len(changes), seen)
	}
	return changes
}

// Around every change of the clock in many zones over many years, each of many schedules
// answers as the walk does.
func TestEveryClockChange(t *testing.T) {
	var changes, ticks, gaps, folds int
	rng := rand.New(rand.NewPCG(1, 2))
	for _, z := range changingZones {
		zone, err := time.LoadLocation(z.name)
		if err != nil {
			t.Fatal(err)
		}
		found := changesOf(t, zone, time.Date(z.since, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(z.till, 1, 1, 0, 0, 0, 0, time.UTC))
		if len(found) < z.changes {
			t.Errorf("%s: %d changes from %d to %d, want at least %d", z.name, len(found), z.since, z.till, z.changes)
		}
		for i, at := range found {
			if i > 0 && at-found[i-1] < 4*86400 {
				t.Fatalf("%s: two changes within four days; the walk looks at one", z.name)
			}
			x := &changeWalk{at: at, zone: zone, rng: rng, clocks: map[[2]int64]*walked{}}
			for n, c := range changeCases {
				x.try(t, fmt.Sprint(z.name, n), c.expr, c.reach)
			}
			ticks, gaps, folds = ticks+x.ticks, gaps+x.gaps, folds+x.folds
		}
		changes += len(found)
	}
	t.Logf("%d zones, %d changes, %d schedules; %d ticks compared, %d in gaps, %d in folds",
		len(changingZones), changes, len(changeCases), ticks, gaps, folds)
	if len(changingZones) < 16 || changes < 620 || ticks < 1_650_000 || gaps < 1600 || folds < 170_000 {
		t.Error("that is less than it was: this test must not become hollow")
	}
}

// changeWalk goes over one change of a clock.
type changeWalk struct {
	at                 int64
	zone               *time.Location
	rng                *rand.Rand
	clocks             map[[2]int64]*walked // by reach and step
	ticks, gaps, folds int
}

type walked struct {
	wallClock
	repeated map[int64]bool
}

func (x *changeWalk) clock(reach, step int64) *walked {
	key := [2]int64{reach, step}
	if x.clocks[key] == nil {
		// Nothing changes in the days before: the wall clock is at its highest there.
		c := newWallClock(x.zone, x.at-reach-step, x.at+reach, step)
		x.clocks[key] = &walked{c, c.repeats()}
	}
	return x.clocks[key]
}

func (x *changeWalk) try(t *testing.T, name, expr string, hours int64) {
	s := parseFor(t, name, expr, x.zone.String())
	w := twinOf(t, s, expr, x.zone)
	step, reach := int64(60), hours*3600
	if strings.Count(expr, " ") == 5 {
		step = 1
	}
	c, from, before := x.clock(reach, step), x.at-reach, x.at+reach
	want, gaps := w.ticks(c.wallClock, from)
	compare(t, s, from, before, want)
	for i, sec := range want {
		note := ""
		switch {
		case gaps[i]:
			note, x.gaps = jobs.NoteGap, x.gaps+1
		case c.repeated[c.shows[(sec-c.start)/step]]:
			note, x.folds = jobs.NoteFold, x.folds+1
		}
		if got := s.Note(time.Unix(sec, 0)); got != note {
			t.Fatalf("%s: note of %v is %q, want %q", s, time.Unix(sec, 0).UTC(), got, note)
		}
	}
	for range 4 {
		x.anywhere(t, s, from, before, want)
	}
	x.ticks += len(want)
}

// anywhere asks from an instant that is no tick, and counts between two of them.
func (x *changeWalk) anywhere(t *testing.T, s *jobs.Schedule, from, before int64, want []int64) {
	a := time.Unix(from, x.rng.Int64N((before-from)*1e9))
	b := a.Add(time.Duration(x.rng.Int64N(time.Unix(before, 0).Sub(a).Nanoseconds())))
	first := func(at time.Time) int { // of the ticks at or after
		i, _ := slices.BinarySearchFunc(want, at, func(sec int64, at time.Time) int { return time.Unix(sec, 0).Compare(at) })
		return i
	}
	i, k := first(a), first(b)
	if got := s.Next(a); i < len(want) && got.Unix() != want[i] {
		t.Fatalf("%s: after %v comes %v, want %v", s, a.UTC(), got, time.Unix(want[i], 0).UTC())
	}
	if got := s.Prev(a); i > 0 && got.Unix() != want[i-1] {
		t.Fatalf("%s: before %v was %v, want %v", s, a.UTC(), got, time.Unix(want[i-1], 0).UTC())
	}
	if n, last := s.Count(a, b); n != k-i || n > 0 && last.Unix() != want[k-1] {
		t.Fatalf("%s: from %v to %v there are %d up to %v, want %d", s, a.UTC(), b.UTC(), n, last, k-i)
	}
}
