package ics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// An event that repeats is its days in the decade of now and in the next one, by each rule that comes at most once a day.
func TestRules(t *testing.T) {
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
		{"each day", "20261224", "FREQ=DAILY;COUNT=3", "2026-12-24..2026-12-26"},
		{"each second day of a month", "20270101", "FREQ=DAILY;INTERVAL=2;BYMONTH=1;UNTIL=20270108", "2027-01-01 2027-01-03 2027-01-05 2027-01-07"},
		{"the weekdays of each second week", "20261221", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;COUNT=4", "2026-12-21 2026-12-25 2027-01-04 2027-01-08"},
		{"a week that begins on Sunday", "20261227", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=SU,TU;WKST=SU", "2026-12-27 2026-12-29 2027-01-10 2027-01-12"},
		{"one that begins on Monday", "20261227", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=SU,TU;WKST=MO", "2026-12-27 2027-01-05 2027-01-10 2027-01-19"},
		{"the last of each month", "20261231", "FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "2026-12-31 2027-01-31 2027-02-28"},
		{"the 31st, where there is one", "20261231", "FREQ=MONTHLY;COUNT=3", "2026-12-31 2027-01-31 2027-03-31"},
		{"the last working day", "20261231", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3", "2026-12-31 2027-01-29 2027-02-26"},
		{"first Friday", "20261204", "FREQ=MONTHLY;BYDAY=1FR;COUNT=2", "2026-12-04 2027-01-01"},
		{"Friday the 13th", "20261113", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=2", "2026-11-13 2027-08-13"},
		{"several months", "20261224", "FREQ=YEARLY;BYMONTH=1,12;COUNT=3", "2026-12-24 2027-01-24 2027-12-24"},
		{"the day of elections", "20281107", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "2028-11-07 2032-11-02 2036-11-04"},
		{"the day of repentance, the Wednesday before the 23rd of November", "20261118", "FREQ=YEARLY;BYMONTH=11;BYDAY=WE;BYMONTHDAY=16,17,18,19,20,21,22;COUNT=3", "2026-11-18 2027-11-17 2028-11-22"},
		{"the 100th day", "20270410", "FREQ=YEARLY;BYYEARDAY=100;COUNT=2", "2027-04-10 2028-04-09"},
		{"the Monday of week 20", "20260511", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;COUNT=2", "2026-05-11 2027-05-17"},
		{"the 20th Monday", "20260518", "FREQ=YEARLY;BYDAY=20MO;COUNT=2", "2026-05-18 2027-05-17"},
		{"at an hour", "20261224T080000", "FREQ=YEARLY;BYHOUR=8;BYMINUTE=0;COUNT=2", "2026-12-24 2027-12-24"},
		{"until an hour of the day", "20261224T080000", "FREQ=DAILY;UNTIL=20261226T070000", "2026-12-24..2026-12-25"},
		{"from the year 1600 on", "16001224", "FREQ=YEARLY;INTERVAL=30", "2020-12-24"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dates, err := Parse([]byte(calendarOf(event("DTSTART;VALUE=DATE:"+tt.start, "RRULE:"+tt.rule))), icsNow)
			if got := strings.Join(dates, " "); err != nil || got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
	dates, err := Parse([]byte(calendarOf(event("DTSTART:20261230T200000", "DTEND:20270102T030000", "RRULE:FREQ=YEARLY;COUNT=2"))), time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC))
	if got := strings.Join(dates, " "); err != nil || got != "2026-12-30..2027-01-02 2027-12-30..2028-01-02" {
		t.Errorf("days over the turn of the year: %s, %v", got, err)
	}
	// UNTIL in UTC is an instant: 23:59:59 in New York.
	dates, err = Parse([]byte(calendarOf(event("DTSTART;TZID=America/New_York:20261224T080000", "RRULE:FREQ=DAILY;UNTIL=20261226T045959Z"))), icsNow)
	if got := strings.Join(dates, " "); err != nil || got != "2026-12-24..2026-12-25" {
		t.Errorf("UNTIL in UTC: %s, %v", got, err)
	}
}

// A rule that is another than it seems is refused, and not read as something near to it; rrule-go fails by some of them.
func TestOtherRulesAreRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"":                                      `of which "" is not understood; correct the rule, or give the file an event for each of its days`,
		"FREQ=YEARLY;X=1":                       `of which "X=1" is not understood`,
		"FREQ=YEARLY;BYEASTER=400":              `of which "BYEASTER=400" is not understood`,
		"FREQ=YEARLY;DTSTART=20200101":          `of which "DTSTART=20200101" is not understood`,
		"FREQ=YEARLY;BYMONTH=12;BYMONTH=1":      `of which "BYMONTH=1" is not understood`,
		"BYMONTH=12":                            "which is no rule",
		"FREQ=FORTNIGHTLY":                      "which is no rule",
		"FREQ=WEEKLY;BYDAY=XX":                  "which is no rule",
		"FREQ=SECONDLY":                         "more than once a day, and a calendar has days",
		"FREQ=HOURLY;INTERVAL=24;BYHOUR=5":      "more than once a day", // rrule-go looks for that hour forever
		"FREQ=DAILY;BYHOUR=1,2":                 "more than once a day",
		"FREQ=YEARLY;INTERVAL=0":                "in which INTERVAL is no number from 1 to 1000",
		"FREQ=YEARLY;INTERVAL=9223372036854775": "in which INTERVAL is no number from 1 to 1000",
		"FREQ=YEARLY;COUNT=x":                   "in which COUNT is no number",
		"FREQ=YEARLY;COUNT=-1":                  "in which COUNT is no number",
		"FREQ=YEARLY;BYMONTH=13;BYMONTHDAY=1":   "in which bymonth must be between 1 and 12",
		"FREQ=YEARLY;BYMONTHDAY=0":              "in which bymonthday must be",
		"FREQ=YEARLY;BYMONTH=12;BYDAY=6TH":      "in which the number of BYDAY is beyond",
		"FREQ=MONTHLY;BYDAY=53MO":               "in which the number of BYDAY is beyond",
		"FREQ=MONTHLY;BYDAY=-53MO":              "in which the number of BYDAY is beyond",
		"FREQ=WEEKLY;BYDAY=2TH":                 "in which the number of BYDAY is beyond",
		"FREQ=YEARLY;UNTIL=tomorrow":            `and has UNTIL: "TOMORROW" is no date`,
		"FREQ=YEARLY;BYMONTH=11":                "starts on 2026-12-24, which is no day of its rule FREQ=YEARLY;BYMONTH=11; correct DTSTART or RRULE",
		"FREQ=YEARLY;BYMONTH=12;BYDAY=3TH":      "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31":   "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYDAY=53MO":                "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYDAY=-53SU":               "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYYEARDAY=-366;COUNT=1":    "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYSETPOS=-366":             "starts on 2026-12-24, which is no day of its rule",
		"FREQ=YEARLY;BYWEEKNO=-53":              "starts on 2026-12-24, which is no day of its rule",
	} {
		dates, err := Parse([]byte(calendarOf(event("DTSTART;VALUE=DATE:20261224", "RRULE:"+rule))), icsNow)
		if err == nil || err.Line != 5 || !strings.Contains(err.Msg, want) {
			t.Errorf("%s: %q, %v; want %s", rule, dates, err, want)
		}
	}
}

// Rules cost what icsCost allows, however many a file has and whenever they begin.
func TestHostileRules(t *testing.T) {
	for name, e := range map[string][]string{
		"long":  {"DTSTART:16000101", "RRULE:FREQ=DAILY"},
		"rare":  {"DTSTART:20240229", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=TH"},
		"parts": {"DTSTART:20200101", "RRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=1" + strings.Repeat(",1", 10_000)},
	} {
		one := event(e...)
		_, err := Parse([]byte(calendarOf(strings.Repeat(one, 1<<20/len(one)))), icsNow)
		if err == nil || !strings.Contains(err.Msg, "the rules of this file are too many for the years since they began") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Parse([]byte(calendarOf(event("DTSTART:00010101", "RRULE:FREQ=YEARLY"))), icsNow)
	if err == nil || !strings.Contains(err.Msg, "begins before the year 1600") {
		t.Errorf("the year 1: %v", err)
	}
	yearly := slices.Repeat([]string{event("DTSTART:19700101", "RRULE:FREQ=YEARLY")}, 400)
	if dates, err := Parse([]byte(calendarOf(yearly...)), icsNow); err != nil || len(dates) != 20 {
		t.Errorf("400 holidays: %q, %v", dates, err)
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
		dates, err := Parse([]byte(calendarOf(event(lines...), event("DTSTART:20200101"))), icsNow)
		if err != nil {
			t.Fatalf("%q: %s", lines, err.Msg)
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
		dates, err := Parse([]byte(calendarOf(event("DTSTART:20261224", "RRULE:"+tt.rule, "EXDATE:"+tt.except))), icsNow)
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
