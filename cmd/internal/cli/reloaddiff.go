package cli

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// jobsChange is how the jobs of two configurations differ.
type jobsChange struct {
	added, changed, removed []jobChange
	in                      map[string]bool // names to add; those of changed jobs are in both
	out                     []string        // names to remove
}

// jobChange is one job's part of it.
type jobChange struct {
	job  string
	what []string // of a changed job: the settings that differ
}

// compareJobs compares the jobs of two configurations, each with the defaults of its own.
func compareJobs(was, is *Config) (c jobsChange) {
	c.in = map[string]bool{}
	before := make(map[string]Job, len(was.Jobs))
	for _, j := range was.Jobs {
		before[j.Name] = was.fill(j)
	}
	for _, j := range is.Jobs {
		old, had := before[j.Name]
		delete(before, j.Name)
		if !had {
			c.in[j.Name], c.added = true, append(c.added, jobChange{job: j.Name})
			continue
		}
		if list := differences("", reflect.ValueOf(old), reflect.ValueOf(is.fill(j)), false); len(list) > 0 {
			c.in[j.Name], c.out, c.changed = true, append(c.out, j.Name), append(c.changed, jobChange{j.Name, list})
		}
	}
	for _, j := range was.Jobs {
		if _, gone := before[j.Name]; gone {
			c.out, c.removed = append(c.out, j.Name), append(c.removed, jobChange{job: j.Name})
		}
	}
	return c
}

// fill is an entry with the defaults that it leaves to them, and with the dates of the calendars that it names.
func (c *Config) fill(j Job) Job {
	j = c.Defaults.fill(j)
	j.Except, j.Only = c.withDates(j.Except), c.withDates(j.Only)
	return j
}

func (c *Config) withDates(list []string) (dates []string) {
	for _, text := range list {
		if calendar, known := c.Calendars[text]; known {
			dates = append(dates, calendar...)
			continue
		}
		dates = append(dates, text)
	}
	return dates
}

// fill is an entry with the defaults that it leaves to them.
func (d Defaults) fill(j Job) Job {
	if j.TTL == 0 {
		j.TTL = d.TTL
	}
	if j.Overlap == "" {
		j.Overlap = d.Overlap
	}
	if j.CatchUp == "" && len(j.After) == 0 {
		j.CatchUp = d.CatchUp
	}
	if j.TimeZone == "" && len(j.After) == 0 {
		j.TimeZone = d.TimeZone
	}
	return j
}

func (c *jobsChange) empty() bool { return len(c.in) == 0 && len(c.out) == 0 }

// tell logs a line for each job, up to maxTold in each list.
func (c *jobsChange) tell(log *slog.Logger) {
	for _, j := range c.added[:min(len(c.added), maxTold)] {
		log.Info("job added", "job", j.job)
	}
	for _, j := range c.changed[:min(len(c.changed), maxTold)] {
		log.Info("job changed", "job", j.job, "settings", strings.Join(j.what, ", "))
	}
	for _, j := range c.removed[:min(len(c.removed), maxTold)] {
		log.Info("job removed", "job", j.job)
	}
}

// differences names the settings in which two entries differ, with both values where they are no secret.
func differences(path string, was, is reflect.Value, secret bool) (list []string) {
	switch {
	case alike(was, is):
		return nil
	case was.Kind() == reflect.Struct:
		other := settings(is)
		for i, s := range settings(was) {
			list = append(list, differences(join(path, s.key), s.value, other[i].value, secret || s.secret)...)
		}
		return list
	case was.Kind() == reflect.Pointer && !was.IsNil() && !is.IsNil():
		return differences(path, was.Elem(), is.Elem(), secret)
	case was.Kind() == reflect.Pointer && was.IsNil():
		return []string{path + " added"}
	case was.Kind() == reflect.Pointer:
		return []string{path + " removed"}
	case secret:
		return []string{path + " changed"}
	}
	return []string{path + " " + valueText(was) + " -> " + valueText(is)}
}

// alike reports whether two values are equal. A list or map without an element is equal to none.
func alike(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// valueText shows a value, clipped.
func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return quote(x)
	case time.Duration:
		return spec.FormatDuration(x)
	default:
		return spec.Clip(fmt.Sprint(x))
	}
}

// changedSettings names the settings in which two configurations differ, apart from those of jobs: their defaults, and the revision.
func changedSettings(was, is *Config) (names []string) {
	other := leaves(is)
	for i, l := range leaves(was) {
		if !strings.HasPrefix(l.path, "defaults.") && l.path != "node.revision" && !alike(l.value, other[i].value) {
			names = append(names, l.path)
		}
	}
	if !alike(reflect.ValueOf(was.Notify.Targets), reflect.ValueOf(is.Notify.Targets)) {
		names = append(names, "notify.targets")
	}
	if !alike(reflect.ValueOf(was.Handlers), reflect.ValueOf(is.Handlers)) {
		names = append(names, "handlers")
	}
	return names
}
