package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/testkit"
)

// The stored definition has the dates of a calendar, not its name: a job with the name equals a job
// with the dates.
func TestCalendarsBecomeDates(t *testing.T) {
	file := testkit.Write(t, `
calendars: {holidays: [2026-12-24, 2026-12-31..2027-01-01]}
jobs:
  - {name: a, schedule: "@daily", except: [2027-05-01, holidays], start_at: 2026-12-01T08:00:00+01:00, exec: {command: ["true"]}}
`)
	l, err := Load(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	d := l.JobList[0].Definition()
	if want := []string{"2027-05-01", "2026-12-24", "2026-12-31..2027-01-01"}; !slices.Equal(d.Except, want) || d.StartAt.UnixMilli() != 1_796_108_400_000 {
		t.Errorf("stored %q from %v, want %q", d.Except, d.StartAt, want)
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
			config := testkit.Write(t, "calendars: {free: [2026-12-24, free.ics]}\njobs:\n  - {name: a, schedule: '@daily', except: [free], exec: {command: [x]}}\n")
			file := filepath.Join(filepath.Dir(config), "free.ics")
			testkit.Put(t, file, tt.text)
			_, err := Load(Source{File: config})
			if err == nil || !strings.HasPrefix(err.Error(), file+tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s%s", err, file, tt.want)
			}
		})
	}
	config := testkit.Write(t, "calendars: {free: [free.ics]}\njobs:\n  - {name: a, schedule: '@daily', only: [free], exec: {command: [x]}}\n")
	want := config + `:1: calendars.free[0]: there is no file "` + filepath.Join(filepath.Dir(config), "free.ics") + `"; name one, relative to the folder of this file`
	if _, err := Load(Source{File: config}); err == nil || err.Error() != want {
		t.Errorf("no file: %v, want %s", err, want)
	}
}

// event is a VEVENT with these lines.
func event(lines ...string) string {
	return "BEGIN:VEVENT\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\n"
}

func calendarOf(events ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + strings.Join(events, "") + "END:VCALENDAR\r\n"
}
