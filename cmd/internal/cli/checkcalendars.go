package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

// calendarPattern tells the name of a calendar from a date.
var calendarPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// calendars judges the dates of the calendars by themselves, so that a bad one is told once and not for every job.
func (c *checker) calendars() {
	for _, name := range slices.Sorted(maps.Keys(c.Calendars)) {
		path := "calendars." + name
		if !calendarPattern.MatchString(name) {
			c.fault(path, "is not a calendar's name; use 1 to 64 letters, digits and . _ -, the first a letter")
		}
		for i, date := range c.Calendars[name] {
			c.date(fmt.Sprintf("%s[%d]", path, i), date)
		}
	}
}

// date reports whether a text is a date or a range.
func (c *checker) date(path, text string) bool {
	good := true
	for _, f := range fieldErrors(probe(jobs.Job{Except: []string{text}})) {
		if f.Field == "except[0]" { // the jobs package has the rule
			c.fault(path, "%s", f.Msg)
			good = false
		}
	}
	return good
}

// bounds reads the bounds of a job's ticks, with the dates of the calendars that it names.
func (c *checker) bounds(path string, e Job, j *jobs.Job) {
	j.Except, j.Only = c.dates(path+".except", e.Except), c.dates(path+".only", e.Only)
	for _, at := range []struct {
		key, text string
		into      *time.Time
	}{{"start_at", e.StartAt, &j.StartAt}, {"end_at", e.EndAt, &j.EndAt}} {
		if at.text == "" && !c.from.given(path+"."+at.key) {
			continue
		}
		t, err := time.Parse(time.RFC3339, at.text)
		if err != nil {
			c.fault(path+"."+at.key, "%s is not an instant with its offset, such as 2026-12-24T08:00:00Z or 2026-12-24T09:00:00+01:00", quote(at.text))
			continue
		}
		*at.into = t.UTC()
	}
}

// dates puts the dates of calendars in the place of their names. What was told is left out.
func (c *checker) dates(path string, list []string) (dates []string) {
	for i, text := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch calendar, known := c.Calendars[text]; {
		case known:
			if len(calendar) == 0 {
				c.fault(at, "the calendar %s has no dates; give it some under calendars", quote(text))
			}
			for k, date := range calendar {
				if !c.faults.has(fmt.Sprintf("calendars.%s[%d]", text, k)) {
					dates = append(dates, date)
				}
			}
		case calendarPattern.MatchString(text):
			names := slices.Sorted(maps.Keys(c.Calendars))
			c.fault(at, "%s is no date, and no calendar of that name is under calendars%s", quote(text), didYouMean(text, names))
		case c.date(at, text):
			dates = append(dates, text)
		}
	}
	return dates
}
