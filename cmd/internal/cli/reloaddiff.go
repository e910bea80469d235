package cli

import (
	"cmp"
	"log/slog"
	"reflect"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// jobsChange is how the jobs of two configurations differ.
type jobsChange struct {
	added, changed, removed []jobChange
	in                      map[string]bool // names to add; names of changed jobs are in both
	out                     []string        // names to remove
}

// jobChange is one job's part of a change.
type jobChange struct {
	job  string
	what []string // of a changed job: the settings that differ
}

// compareJobs compares the jobs of two configurations, each with the defaults of its own.
func compareJobs(was, is *Config) (c jobsChange) {
	c.in = map[string]bool{}
	before := make(map[string]*jobEntry, len(was.Jobs))
	for i, e := range was.Jobs {
		before[e.settings.Name] = &was.Jobs[i]
	}
	for i, e := range is.Jobs {
		name := e.settings.Name
		old, had := before[name]
		delete(before, name)
		if !had {
			c.in[name], c.added = true, append(c.added, jobChange{job: name})
			continue
		}
		if list := differences(was, old, is, &is.Jobs[i]); len(list) > 0 {
			c.in[name], c.out, c.changed = true, append(c.out, name), append(c.changed, jobChange{name, list})
		}
	}
	for _, e := range was.Jobs {
		if name := e.settings.Name; before[name] != nil {
			c.out, c.removed = append(c.out, name), append(c.removed, jobChange{job: name})
		}
	}
	return c
}

// differences returns the settings that differ between two entries, each of its configuration, with
// both values where they are no secret.
func differences(was *Config, old *jobEntry, is *Config, entry *jobEntry) (list []string) {
	one, two := was.fill(old), is.fill(entry)
	for _, s := range jobs.Settings.Diff(&one, &two) {
		list = append(list, s.Name+" "+jobs.Settings.Show(&one, s)+" -> "+jobs.Settings.Show(&two, s))
	}
	return append(list, workDiffers("", reflect.ValueOf(old.work), reflect.ValueOf(entry.work), false)...)
}

// fill returns an entry with the defaults that it uses, and with the dates of its calendars.
func (c *Config) fill(e *jobEntry) jobs.Job {
	j := c.Defaults.words(*e)
	j.TTL = cmp.Or(j.TTL, c.Defaults.TTL)
	if len(j.After) == 0 {
		j.TimeZone = cmp.Or(j.TimeZone, c.Defaults.TimeZone)
	}
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

// words returns an entry with the default words that it leaves out. An invalid word is left out: it
// was already reported.
func (d Defaults) words(e jobEntry) jobs.Job {
	j := e.settings
	for name, word := range map[string]string{"overlap": d.Overlap, "catch_up": d.CatchUp} {
		if s, _ := spec.Named(name); !e.given(name) && (len(j.After) == 0 || !s.Unscheduled) {
			_ = jobs.Settings.Set(&j, s, word)
		}
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

// workDiffers returns the settings that differ between the work of two jobs, with both values where
// they are no secret.
func workDiffers(path string, was, is reflect.Value, secret bool) (list []string) {
	switch {
	case alike(was, is):
		return nil
	case was.Kind() == reflect.Struct:
		other := settings(is)
		for i, s := range settings(was) {
			list = append(list, workDiffers(join(path, s.key), s.value, other[i].value, secret || s.secret)...)
		}
		return list
	case was.Kind() == reflect.Pointer && !was.IsNil() && !is.IsNil():
		return workDiffers(path, was.Elem(), is.Elem(), secret)
	case was.Kind() == reflect.Pointer && was.IsNil():
		return []string{path + " added"}
	case was.Kind() == reflect.Pointer:
		return []string{path + " removed"}
	case secret:
		return []string{path + " changed"}
	}
	return []string{path + " " + print.Quote(was.String()) + " -> " + print.Quote(is.String())}
}

// alike reports whether two values are equal. A list or map without an element is equal to none.
func alike(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// changedSettings names the settings in which two configurations differ, apart from jobs, their
// defaults, and the revision.
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
