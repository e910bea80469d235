package cli

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs/cron"
)

// The stored definition has the dates of a calendar, not its name: a job with the name equals a job
// with the dates.
func TestCalendarsBecomeDates(t *testing.T) {
	file := write(t, `
calendars: {holidays: [2026-12-24, 2026-12-31..2027-01-01]}
jobs:
  - {name: a, schedule: "@daily", except: [2027-05-01, holidays], start_at: 2026-12-01T08:00:00+01:00, exec: {command: ["true"]}}
`)
	l, err := load(source{file: file})
	if err != nil {
		t.Fatal(err)
	}
	d := l.jobs[0].Definition()
	if want := []string{"2027-05-01", "2026-12-24", "2026-12-31..2027-01-01"}; !slices.Equal(d.Except, want) || d.StartAt.UnixMilli() != 1_796_108_400_000 {
		t.Errorf("stored %q from %v, want %q", d.Except, d.StartAt, want)
	}
}

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
				dates, err := parseICS([]byte(text), icsNow)
				if got := strings.Join(dates, " "); err != nil || got != tt.want {
					t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
				}
			}
		})
	}
}

// icsNow is when the files of these tests are read.
var icsNow = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// Of more days than a job may have, those that are past are left out, the first ones first: which ones depends on the days alone.
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
		dates, err := parseICS(text, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
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
		if dates, err := parseICS(text, tt.now); err != nil || dates[0] != tt.first || (len(dates) > cron.MaxDates) != (tt.first < "2017-06") {
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
		if dates, err := parseICS(text, icsNow); err != nil || len(dates) != 1 {
			t.Fatal(dates, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(4000), cost(40_000); many > 30*few+1<<20 {
		t.Errorf("10 times the lines cost %d in place of %d bytes", many, few)
	}
}

// Each fault names the file, the line, the setting, and the cure.
func TestCalendarFilesAreRefused(t *testing.T) {
	many := make([]string, 501)
	for i := range many {
		many[i] = event("DTSTART:" + time.Date(2190, 1, 1+2*i, 0, 0, 0, 0, time.UTC).Format("20060102"))
	}
	for _, tt := range []struct{ name, text, want string }{
		{"recurrence", calendarOf(event("SUMMARY:New Year\\, again", "DTSTART:20260101", "RRULE:FREQ=HOURLY")), `:6: calendars.free[1]: the event "New Year, again" repeats (RRULE:FREQ=HOURLY), more than once a day, and a calendar has days; correct the rule, or give the file an event for each of its days`},
		{"each week", calendarOf(event("DTSTART:20260101", "RRULE:FREQ=WEEKLY")), `: calendars.free[1]: has `},
		{"periods", calendarOf(event("DTSTART:20260101", "RDATE;VALUE=PERIOD:20260301T000000Z/P1D")), `:5: calendars.free[1]: the event "" has RDATE: "20260301T000000Z/P1D" is no date such as 20261224`},
		{"an exception that is no day of it", calendarOf(event("DTSTART:20260101", "RRULE:FREQ=YEARLY", "EXDATE:20270101,20270102")), `:6: calendars.free[1]: the event "" has EXDATE: it does not come on 2027-01-02; correct EXDATE, or remove it`},
		{"a rule of exceptions", calendarOf(event("DTSTART:20260101", "RRULE:FREQ=YEARLY", "EXRULE:FREQ=YEARLY;INTERVAL=2")), `:6: calendars.free[1]: the event "" repeats with exceptions (EXRULE:FREQ=YEARLY;INTERVAL=2) that are not read; give the file`},
		{"a cancelled exception", calendarOf(event("DTSTART:20260101", "RRULE:FREQ=YEARLY"), event("STATUS:CANCELLED", "DTSTART:20270101", "RECURRENCE-ID:20270101")), `:10: calendars.free[1]: the event "" repeats with exceptions (RECURRENCE-ID:20270101)`},
		{"two rules", calendarOf(event("DTSTART:20260101", "RRULE:FREQ=YEARLY", "RRULE:FREQ=YEARLY;INTERVAL=3")), `:6: calendars.free[1]: the event "" repeats with exceptions (RRULE:`},
		{"a rule that has ended", calendarOf(event("DTSTART:20010101", "RRULE:FREQ=YEARLY;COUNT=3")), `: calendars.free[1]: has no days in the years from 20`},
		{"only cancelled events", calendarOf(event("STATUS:CANCELLED", "DTSTART:20260101")), `: calendars.free[1]: has only cancelled events; name the right file, or remove the calendar`},
		{"no start", calendarOf(event("SUMMARY:x")), `:3: calendars.free[1]: the event "x" has no DTSTART; give it one, or remove it`},
		{"no date", calendarOf(event("SUMMARY:x", "DTSTART:2026-01-01")), `:5: calendars.free[1]: the event "x" has DTSTART: "2026-01-01" is no date such as 20261224`},
		{"no day", calendarOf(event("SUMMARY:x", "DTSTART:20260230")), `:5: calendars.free[1]: the event "x" has DTSTART: "20260230" is no date`},
		{"no duration", calendarOf(event("SUMMARY:x", "DTSTART:20260101", "DURATION:-P1D")), `:6: calendars.free[1]: the event "x" has DURATION: "-P1D" is none such as P1D`},
		{"backwards", calendarOf(event("SUMMARY:x", "DTSTART:20260102", "DTEND:20260101")), `:6: calendars.free[1]: the event "x" ends before it starts; correct DTSTART or DTEND`},
		{"a year", calendarOf(event("DTSTART:22000101")), `: calendars.free[1]: 2200-01-01 is outside the years 2000 to 2199; leave the event out`},
		{"only days that are long past", calendarOf(event("DTSTART:19991231")), `: calendars.free[1]: has no days in the years from 20`},
		{"too many", calendarOf(many...), `: calendars.free[1]: has 501 days and ranges of days, more than 500, without those that were over a month ago; leave out the last ones`},
		{"no event", calendarOf(), `: calendars.free[1]: has no events; name the right file`},
		{"cut off", strings.TrimSuffix(calendarOf(event("DTSTART:20260101")), "END:VCALENDAR\r\n"), ":1: calendars.free[1]: BEGIN:VCALENDAR has no end: the file is cut off; get it anew"},
		{"cut off in an event", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n", ":2: calendars.free[1]: BEGIN:VEVENT has no end"},
		{"an end too many", calendarOf("END:VEVENT\r\n"), ":3: calendars.free[1]: END:VEVENT ends nothing that is open"},
		{"a page", "<html>\n", ":1: calendars.free[1]: is no iCalendar file, which begins with BEGIN:VCALENDAR"},
		{"empty", "", ":1: calendars.free[1]: is no iCalendar file"},
		{"not UTF-8", "BEGIN:VCALENDAR\n\xff\n", ":2: calendars.free[1]: the text is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := write(t, "calendars: {free: [2026-12-24, free.ics]}\njobs:\n  - {name: a, schedule: '@daily', except: [free], exec: {command: [x]}}\n")
			file := filepath.Join(filepath.Dir(config), "free.ics")
			put(t, file, tt.text)
			_, err := load(source{file: config})
			if err == nil || !strings.HasPrefix(err.Error(), file+tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s%s", err, file, tt.want)
			}
		})
	}
	config := write(t, "calendars: {free: [free.ics]}\njobs:\n  - {name: a, schedule: '@daily', only: [free], exec: {command: [x]}}\n")
	want := config + `:1: calendars.free[0]: there is no file "` + filepath.Join(filepath.Dir(config), "free.ics") + `"; name one, relative to the folder of this file`
	if _, err := load(source{file: config}); err == nil || err.Error() != want {
		t.Errorf("no file: %v, want %s", err, want)
	}
}

// A node reads the dates again when the file of a calendar changes, also after a refused file.
func TestCalendarFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	job := "jobs:\n  - {name: first, schedule: '@daily', except: [free], exec: {command: [x]}}\n"
	r, config, said := reloadable(t, "calendars: {free: [2026-12-24]}\n"+job)
	looks := func() {
		for range 3 {
			r.look(t.Context())
		}
	}
	except := func() string { return strings.Join(r.slots[0].jobs[0].Except, " ") }
	file := filepath.Join(filepath.Dir(config), "free.ics")
	put(t, config, "redis: {url: 'redis://127.0.0.1:1'}\ncalendars: {free: [2026-12-24, free.ics]}\n"+job)
	looks()
	if !strings.Contains(said.String(), "there is no file") {
		t.Errorf("an absent file: %s", said)
	}
	put(t, file, calendarOf(event("SUMMARY:x", "DTSTART:20270101", "RRULE:FREQ=HOURLY")))
	looks()
	if !strings.Contains(said.String(), "file="+file+" line=6") || except() != "2026-12-24" {
		t.Errorf("a bad file: except %s: %s", except(), said)
	}
	put(t, file, calendarOf(event("DTSTART:20270101")))
	looks()
	if except() != "2026-12-24 2027-01-01" || strings.Count(said.String(), "configuration reloaded") != 1 {
		t.Errorf("a good file: except %s: %s", except(), said)
	}
	put(t, file, calendarOf(event("DTSTART:20270101", "DTEND:20270103")))
	looks()
	if except() != "2026-12-24 2027-01-01..2027-01-02" || strings.Count(said.String(), "configuration reloaded") != 2 {
		t.Errorf("a changed file: except %s: %s", except(), said)
	}
}
