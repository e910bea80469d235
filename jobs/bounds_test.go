package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

// twinBounds are the bounds of a schedule as text, and as what they say.
type twinBounds struct {
	except, only []string // dates and ranges
	from, until  int64    // ms; 0: none
}

func (b twinBounds) text() (text string) {
	if len(b.except) > 0 {
		text += " except " + strings.Join(b.except, ",")
	}
	if len(b.only) > 0 {
		text += " only " + strings.Join(b.only, ",")
	}
	for word, ms := range map[string]int64{" from ": b.from, " until ": b.until} {
		if ms != 0 {
			text += word + time.UnixMilli(ms).UTC().Format(layout)
		}
	}
	return text
}

// hasDay looks at the date that a wall clock shows.
func (b twinBounds) hasDay(wall time.Time) bool {
	date := wall.Format(time.DateOnly)
	in := func(list []string) bool {
		for _, text := range list {
			if first, last, ranged := strings.Cut(text, ".."); date == first || ranged && first <= date && date <= last {
				return true
			}
		}
		return false
	}
	return !in(b.except) && (len(b.only) == 0 || in(b.only))
}

func (b twinBounds) hasInstant(ms int64) bool { return (b.from == 0 || ms >= b.from) && (b.until == 0 || ms <= b.until) }

// drawBounds draws bounds that matter near an instant, and mostly none.
func drawBounds(t *rapid.T, near int64) (b twinBounds) {
	if near < time.Date(2000, 1, 9, 0, 0, 0, 0, time.UTC).Unix() || rapid.Bool().Draw(t, "unbounded") {
		return b
	}
	dates := func(label string) (list []string) {
		for range rapid.IntRange(0, 3).Draw(t, label) {
			day := time.Unix(near, 0).UTC().AddDate(0, 0, rapid.IntRange(-3, 2).Draw(t, "day"))
			text := day.Format(time.DateOnly)
			if n := rapid.IntRange(0, 2).Draw(t, "days more"); n > 0 {
				text += ".." + day.AddDate(0, 0, n).Format(time.DateOnly)
			}
			list = append(list, text)
		}
		return list
	}
	instant := func(label string) int64 {
		if rapid.IntRange(0, 3).Draw(t, label) > 0 {
			return 0
		}
		ms := rapid.Int64Range(-36*3600, 36*3600).Draw(t, "second")*1000 + rapid.SampledFrom([]int64{0, 0, 1, 999}).Draw(t, "ms")
		return near*1000 + ms
	}
	b.except, b.only = dates("except"), dates("only")
	b.from, b.until = instant("from"), instant("until")
	return b
}

// TestEveryAgreesWithItsTwin compares @every within bounds with a walk over its multiples, around a change of clocks.
func TestEveryAgreesWithItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, near := drawPlace(t)
		b := drawBounds(t, near)
		minutes := rapid.SampledFrom([]int64{1, 7, 30, 60, 90, 1440}).Draw(t, "minutes")
		expr := fmt.Sprintf("@every %dm", minutes) + b.text()
		s, err := jobs.ParseSchedule(expr, zone.String())
		if err != nil {
			if strings.Contains(err.Error(), "no tick is left") || strings.Contains(err.Error(), "leave no day") {
				t.Skip("such as only and except the same day")
			}
			t.Fatalf("%s: %v", expr, err)
		}
		from, before := near-rapid.Int64Range(0, 40*3600).Draw(t, "before"), near+rapid.Int64Range(1, 40*3600).Draw(t, "after")
		var want []int64
		for sec := from; sec < before; sec++ {
			if sec%(minutes*60) == 0 && b.hasInstant(sec*1000) && b.hasDay(time.Unix(sec, 0).In(zone)) {
				want = append(want, sec)
			}
		}
		compare(t, s, from, before, want)
	})
}
