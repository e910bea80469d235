package cli

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// An event that repeats each year is its days in the decade of the year and in the next one.
func TestYearlyRules(t *testing.T) {
	for _, tt := range []struct{ name, start, rule, want string }{
		{"Christmas", "19701224", "FREQ=YEARLY", "2020-12-24 2021-12-24 2022-12-24 2023-12-24 2024-12-24 2025-12-24 2026-12-24 2027-12-24 2028-12-24 2029-12-24 " +
			"2030-12-24 2031-12-24 2032-12-24 2033-12-24 2034-12-24 2035-12-24 2036-12-24 2037-12-24 2038-12-24 2039-12-24"},
		{"as calendars write it", "20261224", "FREQ=YEARLY;UNTIL=20281224T225959Z;BYMONTH=12;BYMONTHDAY=24;WKST=MO", "2026-12-24 2027-12-24 2028-12-24"},
		{"up to a day before", "20261224", "FREQ=YEARLY;UNTIL=20281223", "2026-12-24 2027-12-24"},
		{"lower case, each third year, counted", "20261224", "freq=yearly;interval=3;count=2", "2026-12-24 2029-12-24"},
		{"counted from the start", "20181224", "FREQ=YEARLY;COUNT=4", "2020-12-24 2021-12-24"},
		{"a leap day, of which years without do not count", "20240229", "FREQ=YEARLY;COUNT=3", "2024-02-29 2028-02-29 2032-02-29"},
		{"Thanksgiving", "20241128", "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=4", "2024-11-28 2025-11-27 2026-11-26 2027-11-25"},
		{"the first Monday", "20250901", "FREQ=YEARLY;BYDAY=1MO;BYMONTH=9;COUNT=3", "2025-09-01 2026-09-07 2027-09-06"},
		{"the last Monday", "20250526", "FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;COUNT=7", "2025-05-26 2026-05-25 2027-05-31 2028-05-29 2029-05-28 2030-05-27 2031-05-26"},
		{"the last but one Friday", "20251219", "FREQ=YEARLY;BYMONTH=12;BYDAY=-2FR;COUNT=2", "2025-12-19 2026-12-18"},
		{"a fifth Monday, where there is one", "20260330", "FREQ=YEARLY;BYMONTH=3;BYDAY=5MO;COUNT=2", "2026-03-30 2027-03-29"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dates, err := parseICS([]byte(calendarOf(event("DTSTART;VALUE=DATE:"+tt.start, "RRULE:"+tt.rule))), 2026)
			if got := strings.Join(dates, " "); err != nil || got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
	dates, err := parseICS([]byte(calendarOf(event("DTSTART:20261230T200000", "DTEND:20270102T030000", "RRULE:FREQ=YEARLY;COUNT=2"))), 2029)
	if got := strings.Join(dates, " "); err != nil || got != "2026-12-30..2027-01-02 2027-12-30..2028-01-02" {
		t.Errorf("days over the turn of the year: %s, %v", got, err)
	}
}

// A rule that is another than it seems is refused, and not read as something near to it.
func TestOtherRulesAreRefused(t *testing.T) {
	for _, rule := range []string{
		"", "FREQ=MONTHLY", "FREQ=YEARLY;BYMONTH=13;BYMONTHDAY=1", "FREQ=YEARLY;BYMONTH=0", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=32", "FREQ=YEARLY;INTERVAL=0", "FREQ=YEARLY;COUNT=x", "FREQ=YEARLY;BYMONTH=1,12", "FREQ=YEARLY;BYMONTHDAY=24",
		"FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=-8", "FREQ=YEARLY;BYDAY=TH", "FREQ=YEARLY;BYDAY=4TH", "FREQ=YEARLY;BYMONTH=12;BYDAY=TH",
		"FREQ=YEARLY;BYMONTH=12;BYDAY=4TH,4FR", "FREQ=YEARLY;BYMONTH=12;BYDAY=6TH", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24;BYDAY=4TH", "FREQ=YEARLY;BYWEEKNO=52", "FREQ=YEARLY;BYMONTH=12;BYDAY=TH;BYSETPOS=4",
	} {
		dates, err := parseICS([]byte(calendarOf(event("DTSTART;VALUE=DATE:20261224", "RRULE:"+rule))), 2026)
		if err == nil || err.line != 5 || !strings.Contains(err.msg, "only FREQ=YEARLY on one day of the year is read; give the file an event for each of its days") {
			t.Errorf("%s: %q, %v", rule, dates, err)
		}
	}
	for rule, want := range map[string]string{
		"FREQ=YEARLY;INTERVAL=21":                  "repeats each 21 years, and events are read for 20",
		"FREQ=YEARLY;INTERVAL=9223372036854775807": "repeats each 9223372036854775807 years",
		"FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=15":     "starts on 2026-12-24, which is no day of its rule FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=15; correct DTSTART or RRULE",
		"FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25":     "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=11":                   "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=11;BYDAY=4TH":         "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31":      "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;UNTIL=tomorrow":               `has UNTIL: "TOMORROW" is no date`,
		"FREQ=YEARLY;BYMONTH=12;BYDAY=3TH":         "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=12;BYDAY=4FR":         "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=12;BYDAY=-2TH;X=":     "only FREQ=YEARLY",
	} {
		if dates, err := parseICS([]byte(calendarOf(event("DTSTART;VALUE=DATE:20261224", "RRULE:"+rule))), 2026); err == nil || !strings.Contains(err.msg, want) {
			t.Errorf("%s: %q, %v; want %s", rule, dates, err, want)
		}
	}
}

// Random rules with exceptions and further days, against a walk over all days from the start on.
func TestYearlyRulesAgainstTwin(t *testing.T) {
	const form = "20060102"
	rng := rand.New(rand.NewPCG(1, 0))
	for range 400 {
		start := time.Date(1990+rng.IntN(50), 1, 1+rng.IntN(366), 0, 0, 0, 0, time.UTC)
		length, interval, count := 1+rng.IntN(4), 1+rng.IntN(4), rng.IntN(8)
		until := start.AddDate(rng.IntN(60), 0, 0)
		nth := (start.Day()-1)/7 + 1
		byDay := rng.IntN(2) == 0
		rule := fmt.Sprintf("FREQ=YEARLY;INTERVAL=%d", interval)
		if byDay {
			rule += fmt.Sprintf(";BYMONTH=%d;BYDAY=%d%s", start.Month(), nth, strings.ToUpper(start.Weekday().String()[:2]))
		}
		bounded := rng.IntN(2) == 0
		switch {
		case count > 0:
			rule += fmt.Sprintf(";COUNT=%d", count)
		case bounded:
			rule += ";UNTIL=" + until.Format(form)
		}
		comes := []time.Time{}
		for day := start; day.Year() < 2040 && (count == 0 || len(comes) < count); day = day.AddDate(0, 0, 1) {
			same := day.Month() == start.Month() && day.Day() == start.Day()
			if byDay {
				same = day.Month() == start.Month() && day.Weekday() == start.Weekday() && (day.Day()-1)/7+1 == nth
			}
			if same && (day.Year()-start.Year())%interval == 0 && (count > 0 || !bounded || !day.After(until)) {
				comes = append(comes, day)
			}
		}
		lines := []string{"DTSTART;VALUE=DATE:" + start.Format(form), "DTEND;VALUE=DATE:" + start.AddDate(0, 0, length).Format(form), "RRULE:" + rule}
		if n := len(comes); n > 1 && rng.IntN(2) == 0 {
			gone := rng.IntN(n)
			lines = append(lines, "EXDATE;VALUE=DATE:"+comes[gone].Format(form))
			comes = slices.Delete(comes, gone, gone+1)
		}
		if rng.IntN(3) == 0 {
			more := time.Date(2021+rng.IntN(18), 1, 1+rng.IntN(365), 0, 0, 0, 0, time.UTC)
			lines = append(lines, "RDATE;VALUE=DATE:"+more.Format(form))
			comes = append(comes, more)
		}
		days := map[string]bool{} // of the window, each by itself
		for _, first := range comes {
			for i := range length {
				if first.Year() >= 2020 {
					days[first.AddDate(0, 0, i).Format(time.DateOnly)] = true
				}
			}
		}
		dates, err := parseICS([]byte(calendarOf(event(lines...), event("DTSTART:20200101"))), 2026)
		if err != nil {
			t.Fatalf("%q: %s", lines, err.msg)
		}
		days["2020-01-01"] = true
		got := map[string]bool{}
		for _, d := range dates {
			from, to, ranged := strings.Cut(d, "..")
			if !ranged {
				to = from
			}
			for day := date(t, from); !day.After(date(t, to)); day = day.AddDate(0, 0, 1) {
				got[day.Format(time.DateOnly)] = true
			}
		}
		for day := range days {
			if !got[day] {
				t.Errorf("%q: %s is not among %q", lines, day, dates)
			}
		}
		if len(got) != len(days) {
			t.Errorf("%q: %d days, want %d: %q", lines, len(got), len(days), dates)
		}
	}
}

// An EXDATE costs one year of its rule, however far it is from the start, and an RDATE none.
func TestExceptionsAreSoughtInTheirYear(t *testing.T) {
	const n = 500
	years := 0
	soughtIn = func(int) { years++ }
	t.Cleanup(func() { soughtIn = func(int) {} })
	for _, lines := range [][]string{
		append([]string{"DTSTART:00010101", "RRULE:FREQ=YEARLY"}, slices.Repeat([]string{"EXDATE:99990101"}, n)...),
		append([]string{"DTSTART:00010101", "RRULE:FREQ=YEARLY;COUNT=9000"}, slices.Repeat([]string{"EXDATE:20260101"}, n)...),
		append([]string{"DTSTART:00010101", "RRULE:FREQ=YEARLY;UNTIL=99990101", "RDATE:20260202"}, slices.Repeat([]string{"EXDATE:20260202"}, n)...),
	} {
		years = 0
		if _, err := parseICS([]byte(calendarOf(event(lines...))), 2026); err != nil || years > 3000+n {
			t.Errorf("%q: %d years, %v", lines[:3], years, err)
		}
	}
}

// An exception is a day of its rule: of its years, from the start to the last one.
func TestExceptionsThatDoNotCome(t *testing.T) {
	for _, tt := range []struct {
		rule, except string
		ok           bool
	}{
		{"FREQ=YEARLY", "20261224", true},
		{"FREQ=YEARLY", "99991224", true},
		{"FREQ=YEARLY", "20251224", false}, // before the start
		{"FREQ=YEARLY", "20271225", false},
		{"FREQ=YEARLY;INTERVAL=2", "20281224", true},
		{"FREQ=YEARLY;INTERVAL=2", "20271224", false},
		{"FREQ=YEARLY;UNTIL=20281224T120000", "20281224", true},
		{"FREQ=YEARLY;UNTIL=20281223", "20281224", false},
		{"FREQ=YEARLY;COUNT=3", "20281224", true},
		{"FREQ=YEARLY;COUNT=3", "20291224", false},
		{"FREQ=YEARLY;COUNT=3;UNTIL=20271224", "20281224", false},
		{"FREQ=YEARLY;COUNT=3;UNTIL=20311224", "20291224", false},
	} {
		dates, err := parseICS([]byte(calendarOf(event("DTSTART:20261224", "RRULE:"+tt.rule, "EXDATE:"+tt.except))), 2026)
		if (err == nil) != tt.ok {
			t.Errorf("%s without %s: %v, %v", tt.rule, tt.except, dates, err)
		}
	}
}

func date(t *testing.T, text string) time.Time {
	t.Helper()
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return day
}
