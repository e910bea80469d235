package cli

import (
	"strings"
	"testing"
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
		"", "FREQ=MONTHLY", "FREQ=YEARLY;INTERVAL=0", "FREQ=YEARLY;COUNT=x", "FREQ=YEARLY;BYMONTH=11", "FREQ=YEARLY;BYMONTH=1,12", "FREQ=YEARLY;BYMONTHDAY=24",
		"FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=-8", "FREQ=YEARLY;BYDAY=TH", "FREQ=YEARLY;BYDAY=4TH", "FREQ=YEARLY;BYMONTH=12;BYDAY=TH",
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
