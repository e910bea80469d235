package ics

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs/cron"
)

// icsSpan is the days of an event, both included.
type icsSpan struct{ first, last time.Time }

// icsFirst is the first day that a job's dates may have. Days before that are past for every job, and left out.
var icsFirst = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// since returns what spans have of a day and the days after it.
func since(spans []icsSpan, day time.Time) []icsSpan {
	spans = slices.DeleteFunc(spans, func(s icsSpan) bool { return s.last.Before(day) })
	for i, s := range spans {
		if s.first.Before(day) {
			spans[i].first = day
		}
	}
	return spans
}

// icsPast is the age from which a job does without a day: ticks that are caught up after an outage are younger.
const icsPast = 31 * 24 * time.Hour

// joinSpans returns the days as dates and ranges, in order. Of more than a job may have, the first ones are left out that are past at
// now. Which ones these are depends on the days alone, so that no definition changes because time has passed.
func joinSpans(spans []icsSpan, now time.Time) (dates []string) {
	slices.SortFunc(spans, func(a, b icsSpan) int { return a.first.Compare(b.first) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		last := &joined[len(joined)-1].last
		switch {
		case s.first.After(last.AddDate(0, 0, 1)):
			joined = append(joined, s)
		case s.last.After(*last):
			*last = s.last
		}
	}
	for len(joined) > cron.MaxDates && joined[0].last.Before(now.Add(-icsPast)) {
		joined = joined[1:]
	}
	for _, s := range joined {
		text := s.first.Format(time.DateOnly)
		if s.last.After(s.first) {
			text += ".." + s.last.Format(time.DateOnly)
		}
		dates = append(dates, text)
	}
	return dates
}
