package scheduler

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

// compare fills in what a generation has, and in what it differs from what is run now.
func (k *known) compare(v *GenerationView, now time.Time) {
	v.Schedules, v.Settings = []ScheduleChange{}, []SettingsChange{}
	held, _ := k.announced(v.Name)
	living := len(k.alive(v.Name)) > 0
	kept := k.aside[v.Name]
	all := make(map[string]bool)
	for _, s := range k.stored {
		all[s.Job] = true
	}
	for job := range kept {
		all[job] = true
	}
	for job := range held {
		all[job] = true
	}
	for _, job := range slices.Sorted(maps.Keys(all)) {
		of, stored := k.generationOf(job)
		a := kept[job]
		if living && a != nil && held[job] == nil {
			a = nil // left over
		}
		switch {
		case stored && of == v.Name && k.orphans[job]:
			v.Removed.add(job)
		case stored && of == v.Name:
			v.Running++
			if held[job] != nil || !living {
				v.Jobs++
			}
		case a == nil && held[job] != nil:
			v.Jobs++
			v.Unsettled.add(job)
		case a == nil && stored:
			v.Removed.add(job)
		case a == nil: // its record is foreign, or it is left over
		case !stored || k.orphans[job]:
			v.Jobs++
			v.Added.add(job)
		default:
			v.Jobs++
			v.differ(job, k.defs[job], a.def, now)
		}
	}
}

// differ notes how two definitions of a job differ.
func (v *GenerationView) differ(job string, was, is jobs.Definition, now time.Time) {
	if was.Schedule != is.Schedule || was.TimeZone != is.TimeZone || was.After != is.After {
		if v.Changed.Schedules++; len(v.Schedules) < namesMost {
			v.Schedules = append(v.Schedules, scheduleChange(job, was, is, now))
		}
	}
	if fields := settingsOf(was, is); len(fields) > 0 {
		if v.Changed.Settings++; len(v.Settings) < namesMost {
			v.Settings = append(v.Settings, SettingsChange{Job: job, Fields: fields})
		}
	}
}

// settingsOf are the settings in which two definitions differ, but for when the job runs.
func settingsOf(a, b jobs.Definition) []string {
	fields := func(d jobs.Definition) (m map[string]json.RawMessage) {
		d.V, d.Schedule, d.TimeZone, d.After, d.Generation = 0, "", "", "", ""
		raw, err := json.Marshal(d)
		if err == nil {
			_ = json.Unmarshal(raw, &m) // what was just written
		}
		return m
	}
	x, y := fields(a), fields(b)
	var differ []string
	for name := range y {
		if string(x[name]) != string(y[name]) {
			differ = append(differ, name)
		}
	}
	for name := range x {
		if _, both := y[name]; !both {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

const (
	day         = 24 * time.Hour
	instantsMax = 5
	// walkMax bounds how many ticks are compared one by one.
	walkMax = 10_000
)

func scheduleChange(job string, was, is jobs.Definition, now time.Time) ScheduleChange {
	c := ScheduleChange{Job: job, Now: scheduleView(was, now), New: scheduleView(is, now)}
	a, b := ticksOf(was), ticksOf(is)
	c.OnlyNow, c.OnlyNew = apart(a, b, now)
	return c
}

// ticksOf is a definition's schedule; nil for one that follows another job, or cannot be read.
func ticksOf(d jobs.Definition) *jobs.Schedule {
	s, err := d.Job().ParsedSchedule()
	if err != nil {
		return nil
	}
	return s
}

func scheduleView(d jobs.Definition, now time.Time) ScheduleView {
	v := ScheduleView{Schedule: d.Schedule, TimeZone: d.TimeZone, After: d.After}
	if s := ticksOf(d); s != nil {
		v.Ticks, _ = s.Count(now, now.Add(day))
	}
	return v
}

// apart are the first ticks after now, within a day, that only one of two schedules has.
func apart(a, b *jobs.Schedule, now time.Time) (onlyA, onlyB []Stamp) {
	onlyA, onlyB = []Stamp{}, []Stamp{}
	end := now.Add(day)
	next := func(s *jobs.Schedule, after time.Time) time.Time {
		if s == nil {
			return end
		}
		if t := s.Next(after); !t.IsZero() && t.Before(end) {
			return t
		}
		return end
	}
	x, y := next(a, now), next(b, now)
	for range walkMax {
		switch {
		case len(onlyA) == instantsMax && len(onlyB) == instantsMax, x.Equal(end) && y.Equal(end):
			return onlyA, onlyB
		case x.Equal(y):
			x, y = next(a, x), next(b, y)
		case x.Before(y):
			if len(onlyA) < instantsMax {
				onlyA = append(onlyA, Stamp(x))
			}
			x = next(a, x)
		default:
			if len(onlyB) < instantsMax {
				onlyB = append(onlyB, Stamp(y))
			}
			y = next(b, y)
		}
	}
	return onlyA, onlyB
}
