package ics

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs/cron"
)

// event is a VEVENT with these lines.
func event(lines ...string) string {
	return "BEGIN:VEVENT\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\n"
}

func calendarOf(events ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + strings.Join(events, "") + "END:VCALENDAR\r\n"
}

// Each event is its days. The end is not one of them.
func TestParseICS(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []string
		want   string
	}{
		{"a day without an end", []string{event("DTSTART;VALUE=DATE:20261224")}, "2026-12-24"},
		{"a day with its end", []string{event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261225")}, "2026-12-24"},
		{"days, the end written first", []string{event("DTEND;VALUE=DATE:20270102", "DTSTART;VALUE=DATE:20261224")}, "2026-12-24..2027-01-01"},
		{"an end that is the start", []string{event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261224")}, "2026-12-24"},
		{"days by their number", []string{event("DTSTART;VALUE=DATE:20261224", "DURATION:P1W")}, "2026-12-24..2026-12-30"},
		{"a time in UTC", []string{event("DTSTART:20261224T230000Z")}, "2026-12-24"},
		{"a time up to midnight", []string{event("DTSTART:20261224T080000", "DTEND:20261225T000000")}, "2026-12-24"},
		{"a time over midnight", []string{event("DTSTART;TZID=Europe/Berlin:20261224T220000", "DTEND;TZID=Europe/Berlin:20261225T000001")}, "2026-12-24..2026-12-25"},
		{"a time and hours", []string{event("DTSTART:20261224T230000", "DURATION:PT1H30M")}, "2026-12-24..2026-12-25"},
		{"a zone in quotes, with a colon", []string{event(`DTSTART;TZID="UTC+1:00":20261224T080000`)}, "2026-12-24"},
		{"lower case, and folded", []string{event("dtstart;val", " ue=date:2026", "\t1224")}, "2026-12-24"},
		{"out of order, doubled, joined", []string{
			event("DTSTART:20270101"), event("DTSTART:20261226"), event("DTSTART:20261225", "DTEND:20261227"), event("DTSTART:20261224"), event("DTSTART:20270101"),
		}, "2026-12-24..2026-12-26 2027-01-01"},
		{"a day inside of a range", []string{event("DTSTART:20261224", "DTEND:20270103"), event("DTSTART:20261226"), event("DTSTART:20270104")}, "2026-12-24..2027-01-02 2027-01-04"},
		{"a rule with exceptions, in several forms", []string{event("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=YEARLY;COUNT=6", "EXDATE;VALUE=DATE:20271224,20281224", "EXDATE:20301224T000000")}, "2026-12-24 2029-12-24 2031-12-24"},
		{"an exception before the years that are read", []string{event("DTSTART;VALUE=DATE:20171224", "RRULE:FREQ=YEARLY;COUNT=5", "EXDATE;VALUE=DATE:20181224")}, "2020-12-24 2021-12-24"},
		{"further days", []string{event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261226", "RDATE;VALUE=DATE:20270501,20270503", "RDATE:20280101")}, "2026-12-24..2026-12-25 2027-05-01..2027-05-04 2028-01-01..2028-01-02"},
		{"a further day that is an exception", []string{event("DTSTART:20261224", "RDATE:20270501", "EXDATE:20270501")}, "2026-12-24"},
		{"days that are long past", []string{event("DTSTART:19700101"), event("DTSTART:19991230", "DTEND:20000103"), event("DTSTART:20261224")}, "2000-01-01..2000-01-02 2026-12-24"},
		{"a cancelled event, with what is not read", []string{event("STATUS:CANCELLED", "DTSTART:20261224", "RRULE:FREQ=YEARLY"), event("DTSTART:20261225")}, "2026-12-25"},
		{"an alarm and a zone have times of their own", []string{
			"BEGIN:VTIMEZONE\r\nBEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nRRULE:FREQ=YEARLY\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n",
			event("BEGIN:VALARM", "DURATION:P9D", "END:VALARM", "DTSTART:20261224"), "BEGIN:VTODO\r\nDTSTART:20200101\r\nEND:VTODO\r\n",
		}, "2026-12-24"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, text := range map[string]string{"CRLF": calendarOf(tt.events...), "LF": strings.ReplaceAll(calendarOf(tt.events...), "\r", ""), "BOM": "\xef\xbb\xbf" + calendarOf(tt.events...)} {
				dates, err := Parse([]byte(text), icsNow)
				if got := strings.Join(dates, " "); err != nil || got != tt.want {
					t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
				}
			}
		})
	}
}

// icsNow is when the files of these tests are read.
var icsNow = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// A calendar with more days than a job may have loses its past days, the first days first: the
// choice depends on the days alone.
func TestPastDaysOfACalendar(t *testing.T) {
	weekly := func(from, until int) []byte {
		var events []string
		for day := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() <= until; day = day.AddDate(0, 0, 7) {
			events = append(events, event("DTSTART:"+day.Format("20060102")))
		}
		return []byte(calendarOf(events...))
	}
	text := weekly(2010, 2026) // 887 days
	var before []string
	for _, year := range []int{2020, 2026, 2031} {
		dates, err := Parse(text, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || len(dates) != cron.MaxDates || dates[0] != "2017-06-02" {
			t.Fatalf("in %d: %d dates from %s on, %v", year, len(dates), dates[0], err)
		}
		if before != nil && !slices.Equal(before, dates) {
			t.Errorf("in %d the dates are others", year)
		}
		before = dates
	}
	for _, tt := range []struct {
		now   time.Time
		first string
	}{
		{time.Date(2017, 6, 26, 0, 0, 0, 0, time.UTC), "2017-05-26"}, // not yet a month ago
		{time.Date(2017, 6, 27, 0, 0, 0, 0, time.UTC), "2017-06-02"},
	} {
		if dates, err := Parse(text, tt.now); err != nil || dates[0] != tt.first || (len(dates) > cron.MaxDates) != (tt.first < "2017-06") {
			t.Errorf("on %s: %d dates from %s on, %v", tt.now, len(dates), dates[0], err)
		}
	}
}

// The cost of a file of folded lines grows as its size.
func TestFoldedLinesCostTheirSize(t *testing.T) {
	cost := func(lines int) uint64 {
		text := []byte(calendarOf(event("SUMMARY:a"+strings.Repeat("\n b", lines), "DTSTART:20261224")))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if dates, err := Parse(text, icsNow); err != nil || len(dates) != 1 {
			t.Fatal(dates, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(4000), cost(40_000); many > 30*few+1<<20 {
		t.Errorf("10 times the lines cost %d in place of %d bytes", many, few)
	}
}
