package jobs

import (
	"fmt"
	"time"
)

// maxPause is how long except and only may leave no tick from now on, in years.
const maxPause = 5

// checkSchedule checks schedule and after, and the bounds of its ticks. With both, the fault is one of after, and the schedule is not
// checked.
func (j Job) checkSchedule(f *faults) {
	zone := j.TimeZone
	if _, err := loadZone(zone); err != nil {
		f.add("time_zone", "%v", err)
		zone = ""
	} else if len(j.After) > 0 && zone != defaultTimeZone {
		f.add("time_zone", "%s is not used: a job with after has no schedule; leave it out", zone)
	}
	if len(j.After) > 0 {
		return
	}
	j.checkBounds(f)
	plain := j
	plain.TimeZone, plain.Except, plain.Only, plain.StartAt, plain.EndAt, plain.Jitter = zone, nil, nil, time.Time{}, time.Time{}, 0
	if j.Schedule == "" {
		f.add("schedule", `is empty; write one such as "*/5 * * * *" or "@every 90s", or name in after the job to run after`)
	} else if s, err := plain.ParsedSchedule(); err != nil {
		f.add("schedule", "%v", err)
	} else if err := s.CheckSteps(); err != nil {
		f.add("schedule", "%v", err)
	}
	if j.bounds().set() && !f.has("schedule", "time_zone", "except", "only", "start_at", "end_at", "jitter") {
		j.checkTicksLeft(f, time.Now())
	}
}

// checkBounds checks each bound by itself, and the end against the start.
func (j Job) checkBounds(f *faults) {
	for _, list := range []struct {
		field string
		dates []string
	}{{"except", j.Except}, {"only", j.Only}} {
		for i, text := range list.dates {
			if _, err := parseDate(text); err != nil {
				f.add(fmt.Sprintf("%s[%d]", list.field, i), "%v", err)
			}
		}
	}
	if n := len(j.Except) + len(j.Only); n > MaxDates {
		f.add("except", "except and only have %d dates and ranges, more than %d; join neighbouring days to ranges", n, MaxDates)
	}
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"start_at", j.StartAt}, {"end_at", j.EndAt}} {
		if err := checkInstant(bound.at); err != nil && !bound.at.IsZero() && !f.has(bound.field) {
			f.add(bound.field, "%v", err)
		}
	}
	if !j.StartAt.IsZero() && !j.EndAt.IsZero() && j.EndAt.Before(j.StartAt) {
		f.add("end_at", "%s is before start_at, %s; move one of them", instantText(j.EndAt), instantText(j.StartAt))
	}
}

// checkTicksLeft refuses bounds that leave no tick.
func (j Job) checkTicksLeft(f *faults, now time.Time) {
	field := "end_at"
	if len(j.Except) > 0 {
		field = "except"
	}
	if len(j.Only) > 0 {
		field = "only"
	}
	s, err := j.ParsedSchedule()
	if err != nil {
		f.add(field, "%v; choose days and instants that leave a tick", err)
		return
	}
	if s.cal.days != nil && !s.ticksSoon(now) {
		f.add(field, "leaves no tick in the next %d years; choose days on which the schedule has a tick", maxPause)
	}
}

// ticksSoon reports whether except and only leave a tick within five years, from now or from the start if that is later. A tick of
// only in the past counts too: a node whose job has had its last tick must still start.
func (s *Schedule) ticksSoon(now time.Time) bool {
	began := now
	if began.Before(s.bounds.from) {
		began = s.bounds.from
	}
	end, after := began.AddDate(maxPause, 0, 0), began
	if first, _ := s.cal.days.ends(); len(s.bounds.only) > 0 {
		if day := unixUTC((first - 1) * daySeconds); day.Before(after) { // a day earlier, whatever the zone
			after = day
		}
	}
	days := *s
	days.bounds.until = time.Time{}
	tick := days.Next(after.Add(-time.Nanosecond))
	return !tick.IsZero() && !tick.After(end)
}
