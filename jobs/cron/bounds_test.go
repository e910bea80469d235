package cron_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// twinBounds are the bounds of a schedule as text, and as values.
type twinBounds struct {
	except, only []string // dates and ranges
	from, until  int64    // ms; 0: none
	plus         int64    // ms that each tick is moved
}

// mostPlus is the largest offset that is drawn, in seconds: a multiple of the steps of the walk.
const mostPlus = 26 * 3600

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
	if b.plus > 0 {
		text += fmt.Sprintf(" plus %dms", b.plus)
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

func (b twinBounds) hasInstant(ms int64) bool {
	return (b.from == 0 || ms >= b.from) && (b.until == 0 || ms <= b.until)
}

// drawBounds draws bounds that matter near an instant, and mostly none.
func drawBounds(t *rapid.T, near int64) (b twinBounds) {
	if rapid.IntRange(0, 2).Draw(t, "moved") == 0 {
		b.plus = rapid.SampledFrom([]int64{1, 999, 1000, 59_999, 3_600_000, 5_400_001, 86_400_000}).Draw(t, "plus")
	}
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
		s, err := cron.Parse(expr, zone.String())
		if err != nil {
			if strings.Contains(err.Error(), "no tick is left") || strings.Contains(err.Error(), "leave no day") {
				t.Skip("such as only and except the same day")
			}
			t.Fatalf("%s: %v", expr, err)
		}
		from, before := near-rapid.Int64Range(0, 40*3600).Draw(t, "before"), near+rapid.Int64Range(1, 40*3600).Draw(t, "after")
		var want []int64
		for sec := from - mostPlus; sec < before; sec++ {
			if sec%(minutes*60) == 0 && b.hasInstant(sec*1000) && b.hasDay(time.Unix(sec, 0).In(zone)) {
				want = append(want, sec)
			}
		}
		_, moved := b.moved(want, from, before)
		compare(t, s, from, before, moved)
	})
}

// Around changes of the clock, dates are dates of the job's zone, and bounds are instants.
func TestBoundsAndChangesOfTheClock(t *testing.T) {
	for _, c := range []struct{ expr, zone, after, want string }{
		// The clock goes from 02:00 to 03:00 on the 29th; the 28th and the 30th are whole days.
		{"30 2 * * * except 2026-03-28", "Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"30 2 * * * except 2026-03-29", "Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-28T01:30:00Z 2026-03-30T00:30:00Z"},
		{"0 0 * * * only 2026-03-29,2026-03-30", "Europe/Berlin", "2026-03-01T00:00:00Z", "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z never"},
		{"@every 1h only 2026-10-25", "Europe/Berlin", "2026-10-25T21:00:00Z", "2026-10-25T22:00:00Z never"},
		// It goes from 24:00 back to 23:00: the last hour of the day comes twice.
		{"*/30 23 * * * only 2017-02-18", "America/Sao_Paulo", "2017-02-19T01:00:00Z", "2017-02-19T01:30:00Z 2017-02-19T02:00:00Z 2017-02-19T02:30:00Z never"},
		{"@every 30m only 2017-02-18", "America/Sao_Paulo", "2017-02-19T01:30:00Z", "2017-02-19T02:00:00Z 2017-02-19T02:30:00Z never"},
		// The 30th is left out: a fixed time of it fires as the 31st begins, and belongs to the 30th.
		{"0 12 * * * except 2011-12-30", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T22:00:00Z"},
		{"0 12 * * * except 2011-12-31", "Pacific/Apia", "2011-12-29T23:00:00Z", "2011-12-30T10:00:00Z 2011-12-31T22:00:00Z"},
		// A start or an end at a tick includes it.
		{"0 * * * * from 2026-03-29T01:00:00Z until 2026-03-29T03:00:00+01:00", "Europe/Berlin", "2000-01-01T00:00:00Z",
			"2026-03-29T01:00:00Z 2026-03-29T02:00:00Z never"},
	} {
		if got := ticks(parse(t, c.expr, c.zone), at(t, c.after), 1+strings.Count(c.want, " ")); got != c.want {
			t.Errorf("%s %s after %s:\n got %s\nwant %s", c.expr, c.zone, c.after, got, c.want)
		}
	}
}

// TestBoundsAndADateThatComesTwice is about a clock that goes from 00:01 back to 23:01: a minute of the 29th comes before the last hour
// of the 28th.
func TestBoundsAndADateThatComesTwice(t *testing.T) {
	for expr, want := range map[string]string{
		"*/30 * * * * only 2006-10-28": "2006-10-29T02:00:00Z 2006-10-29T03:00:00Z",
		"*/30 * * * * only 2006-10-29": "2006-10-29T02:30:00Z 2006-10-29T03:30:00Z 2006-10-29T04:00:00Z",
		"@every 30m only 2006-10-28":   "2006-10-29T02:00:00Z 2006-10-29T03:00:00Z",
		"@every 30m only 2006-10-29":   "2006-10-29T02:30:00Z 2006-10-29T03:30:00Z 2006-10-29T04:00:00Z",
	} {
		from, before := at(t, "2006-10-29T01:45:00Z"), at(t, "2006-10-29T04:15:00Z")
		s := parse(t, expr, "America/St_Johns")
		var ticks []int64
		for text := range strings.FieldsSeq(want) {
			ticks = append(ticks, at(t, text).UnixMilli())
		}
		compare(t, s, from.Unix(), before.Unix(), ticks)
	}
}
