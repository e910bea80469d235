package cron_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// drawMonthDay draws an element of a day field that depends on the month, and the days that it stands for: midnights, UTC.
func drawMonthDay(t *rapid.T, i int) (text string, is func(date time.Time) bool) {
	if i == 5 {
		day, n := rapid.IntRange(0, 7).Draw(t, "weekday"), rapid.IntRange(0, 5).Draw(t, "nth")
		name := rapid.SampledFrom([]string{fmt.Sprint(day), [8]string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}[day]}).Draw(t, "name")
		if n == 0 {
			return name + "L", func(d time.Time) bool { return int(d.Weekday()) == day%7 && d.AddDate(0, 0, 7).Month() != d.Month() }
		}
		return fmt.Sprintf("%s#%d", name, n), func(d time.Time) bool {
			before := 0 // the same weekday, earlier in the month
			for e := d.AddDate(0, 0, -7); e.Month() == d.Month(); e = e.AddDate(0, 0, -7) {
				before++
			}
			return int(d.Weekday()) == day%7 && before == n-1
		}
	}
	n := rapid.IntRange(0, 30).Draw(t, "n")
	switch rapid.IntRange(0, 2).Draw(t, "month day") {
	case 0:
		if n == 0 {
			return "L", func(d time.Time) bool { return d.AddDate(0, 0, 1).Month() != d.Month() }
		}
		return fmt.Sprintf("L-%d", n), func(d time.Time) bool {
			last := d.AddDate(0, 0, n)
			return last.Month() == d.Month() && last.AddDate(0, 0, 1).Month() != d.Month()
		}
	case 1:
		return "LW", func(d time.Time) bool {
			return d.Equal(nearestWeekday(time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC)))
		}
	default:
		return fmt.Sprintf("%dW", n+1), func(d time.Time) bool {
			of := time.Date(d.Year(), d.Month(), n+1, 0, 0, 0, 0, time.UTC)
			return of.Month() == d.Month() && d.Equal(nearestWeekday(of))
		}
	}
}

// nearestWeekday walks to both sides of a date, inside its month, until it meets a weekday.
func nearestWeekday(of time.Time) time.Time {
	for reach := 0; ; reach++ {
		for _, d := range []time.Time{of.AddDate(0, 0, -reach), of.AddDate(0, 0, reach)} {
			if d.Month() == of.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
				return d
			}
		}
	}
}

// TestMonthDaysAgreeWithAWalk compares Next, Prev, Between and Count with a walk over the days of some years, which includes leap years
// and those that are none though 4 divides them.
func TestMonthDaysAgreeWithAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]int{3, 5}).Draw(t, "field")
		text, is := drawMonthDay(t, field)
		expr := "0 0 " + text + " * *"
		if field == 5 {
			expr = "0 0 * * " + text
		}
		s := parse(t, expr, "")
		from := time.Date(rapid.IntRange(1895, 2105).Draw(t, "year"), 1, 1, 0, 0, 0, 0, time.UTC)
		before := from.AddDate(6, 0, 0)
		var want []int64
		for d := from; d.Before(before); d = d.AddDate(0, 0, 1) {
			if is(d) {
				want = append(want, d.UnixMilli())
			}
		}
		compare(t, s, from.Unix(), before.Unix(), want)
	})
}

func TestMonthDays(t *testing.T) {
	for _, c := range []struct{ expr, after, want string }{
		{"0 9 L * *", "2027-02-01T00:00:00Z", "2027-02-28 2027-03-31 2027-04-30"},
		{"0 9 L 2 *", "2027-12-01T00:00:00Z", "2028-02-29 2029-02-28 2030-02-28"},
		{"0 9 L-3 * *", "2027-02-01T00:00:00Z", "2027-02-25 2027-03-28 2027-04-27"},
		{"0 9 L-30 * *", "2027-02-01T00:00:00Z", "2027-03-01 2027-05-01 2027-07-01"},
		{"0 9 15W * *", "2026-08-01T00:00:00Z", "2026-08-14 2026-09-15 2026-10-15"}, // a Saturday
		{"0 9 15W * *", "2026-11-01T00:00:00Z", "2026-11-16 2026-12-15 2027-01-15"}, // a Sunday
		{"0 9 1W * *", "2026-08-01T00:00:00Z", "2026-08-03 2026-09-01 2026-10-01"},  // not in July
		{"0 9 31W * *", "2026-05-01T00:00:00Z", "2026-05-29 2026-07-31 2026-08-31"}, // not in June
		{"0 9 LW * *", "2026-05-01T00:00:00Z", "2026-05-29 2026-06-30 2026-07-31"},
		{"0 9 * * 5#2", "2026-11-01T00:00:00Z", "2026-11-13 2026-12-11 2027-01-08"},
		{"0 9 * * MON#5", "2026-11-01T00:00:00Z", "2026-11-30 2027-03-29 2027-05-31"},
		{"0 9 * * 5L", "2026-11-01T00:00:00Z", "2026-11-27 2026-12-25 2027-01-29"},
		{"0 9 1,L * *", "2026-11-02T00:00:00Z", "2026-11-30 2026-12-01 2026-12-31"},
		{"0 9 15 * 5L", "2026-11-02T00:00:00Z", "2026-11-15 2026-11-27 2026-12-15"}, // either is enough
		{"0 9 * 2 MON#5", "2072-03-01T00:00:00Z", "2112-02-29 2140-02-29 2168-02-29"},
	} {
		s, at := parse(t, c.expr, ""), at(t, c.after)
		var got []string
		for range 3 {
			at = s.Next(at)
			got = append(got, at.Format(time.DateOnly))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s after %s: %s, want %s", c.expr, c.after, text, c.want)
		}
	}
}

func TestMonthDaysRefused(t *testing.T) {
	for expr, want := range map[string]string{
		"0 0 L-31 * *":   `"L-31": write L for the last day, and L-1 to L-30`,
		"0 0 L-0 * *":    `"L-0": write L for the last day`,
		"0 0 32W * *":    "32 is outside 1 to 31",
		"0 0 X * *":      `"X" is not a value, a range such as 1-5, or a step such as */5; the last day of the month is L,`,
		"0 0 L-3W * *":   `"L-3W": there is no weekday nearest to a day before the last; write L-3, LW or 15W`,
		"0 0 1,l-9w * *": `"l-9w": there is no weekday nearest`,
		"0 0 L/2 * *":    `"L/2" is not a value`,
		"0 0 * * L":      "the last Friday of the month is 5L",
		"0 0 * * 5#6":    "write 1 to 5 after #, or 5L for the last",
		"0 0 * * 8#1":    "8 is outside 0 to 7",
		"0 0 * * FOO#1":  `"FOO" is not a day of week`,
		"0 L * * *":      `hour "L": "L" is not a value, a range such as 1-5, or a step such as */5`,
		"0 0 L-30 2 *":   "never fires",
		"0 0 31W 4 *":    "never fires",
	} {
		if _, err := cron.Parse(expr, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", expr, err, want)
		}
	}
}
