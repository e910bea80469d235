package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/config/ics"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/jobs/spec"
)

// calendarPattern distinguishes the name of a calendar from a date.
var calendarPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// isCalendarFile reports whether an entry of a calendar is the name of a file with dates.
func isCalendarFile(entry string) bool { return strings.EqualFold(filepath.Ext(entry), ".ics") }

// calendars judges the dates of the calendars by themselves, so that a bad date is reported once
// and not for every job. It puts the dates of files in the place of their names, and leaves out bad
// dates.
func (c *checker) calendars() {
	c.badCalendars = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Calendars)) {
		path := "calendars." + name
		if !calendarPattern.MatchString(name) {
			c.fault(path, "is not a calendar's name; use 1 to 64 letters, digits and . _ -, the first a letter")
		}
		dates := []string{}
		for i, entry := range c.Calendars[name] {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case isCalendarFile(entry):
				dates = append(dates, c.datesOf(at, entry)...)
			case c.date(at, entry):
				dates = append(dates, entry)
			}
			c.badCalendars[name] = c.badCalendars[name] || c.faults.has(at)
		}
		c.Calendars[name] = dates
	}
}

// datesOf returns the dates of a calendar file, whose name is relative to the folder of the
// configuration.
func (c *checker) datesOf(path, name string) []string {
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(c.From.File), file)
	}
	c.Stamp.addCalendar(file)
	data, err := readLimited(file, maxFile)
	switch {
	case os.IsNotExist(err):
		c.fault(path, "there is no file %s; name one, relative to the folder of this file", print.Quote(file))
		return nil
	case err != nil:
		c.fault(path, "%s: %v", print.Quote(file), err)
		return nil
	}
	if line, msg := refuseText(data); msg != "" {
		c.faults.Add(Place{File: file, Line: line}, path, "%s", msg)
		return nil
	}
	dates, wrong := ics.Parse(data, time.Now())
	if wrong != nil {
		c.faults.Add(Place{File: file, Line: wrong.Line}, path, "%s", wrong.Msg)
		return nil
	}
	if n := len(dates); n > cron.MaxDates {
		c.faults.Add(Place{File: file}, path, "has %d days and ranges of days, more than %d, without those that were over a month ago; leave out the last ones, and write an event of each week as days of the week in the schedules", n, cron.MaxDates)
		return nil
	}
	for _, f := range FieldErrors(probe(jobs.Job{Except: dates})) {
		if strings.HasPrefix(f.Field, "except[") { // the jobs package has the rule
			c.faults.Add(Place{File: file}, path, "%s; leave the event out", f.Msg)
			dates = nil
		}
	}
	return dates
}

// date reports whether a text is a date or a range.
func (c *checker) date(path, text string) bool {
	good := true
	for _, f := range FieldErrors(probe(jobs.Job{Except: []string{text}})) {
		if f.Field == "except[0]" { // the jobs package has the rule
			c.fault(path, "%s", f.Msg)
			good = false
		}
	}
	return good
}

// dates puts the dates of calendars in the place of their names, without faulty dates, which it
// reports.
func (c *checker) dates(path string, list []string) (dates []string) {
	for i, text := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch calendar, known := c.Calendars[text]; {
		case known:
			if len(calendar) == 0 && !c.badCalendars[text] {
				c.fault(at, "the calendar %s has no dates; give it some under calendars", print.Quote(text))
			}
			dates = append(dates, calendar...)
		case calendarPattern.MatchString(text):
			names := slices.Sorted(maps.Keys(c.Calendars))
			c.fault(at, "%s is no date, and no calendar of that name is under calendars%s", print.Quote(text), spec.DidYouMean(text, names))
		case c.date(at, text):
			dates = append(dates, text)
		}
	}
	return dates
}
