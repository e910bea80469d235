package config

import (
	"cmp"
	"log/slog"
	"reflect"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// MaxLogged bounds the log lines of a kind about one reload.
const MaxLogged = 100

// JobsChange is how the jobs of two configurations differ.
type JobsChange struct {
	Added, Changed, Removed []JobChange
	In                      map[string]bool // names to add; names of changed jobs are in both
	Out                     []string        // names to remove
}

// JobChange is one job's part of a change.
type JobChange struct {
	job  string
	what []string // of a changed job: the settings that differ
}

// CompareJobs compares the jobs of two configurations, each with the defaults of its own.
func CompareJobs(was, is *Config) (c JobsChange) {
	c.In = map[string]bool{}
	before := make(map[string]*jobEntry, len(was.Jobs))
	for i, e := range was.Jobs {
		before[e.settings.Name] = &was.Jobs[i]
	}
	for i, e := range is.Jobs {
		name := e.settings.Name
		old, had := before[name]
		delete(before, name)
		if !had {
			c.In[name], c.Added = true, append(c.Added, JobChange{job: name})
			continue
		}
		if list := differences(was, old, is, &is.Jobs[i]); len(list) > 0 {
			c.In[name], c.Out, c.Changed = true, append(c.Out, name), append(c.Changed, JobChange{name, list})
		}
	}
	for _, e := range was.Jobs {
		if name := e.settings.Name; before[name] != nil {
			c.Out, c.Removed = append(c.Out, name), append(c.Removed, JobChange{job: name})
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

// Empty reports whether the jobs are the same.
func (c *JobsChange) Empty() bool { return len(c.In) == 0 && len(c.Out) == 0 }

// Log logs a line for each job, up to MaxLogged in each list.
func (c *JobsChange) Log(log *slog.Logger) {
	for _, j := range c.Added[:min(len(c.Added), MaxLogged)] {
		log.Info("job added", "job", j.job)
	}
	for _, j := range c.Changed[:min(len(c.Changed), MaxLogged)] {
		log.Info("job changed", "job", j.job, "settings", strings.Join(j.what, ", "))
	}
	for _, j := range c.Removed[:min(len(c.Removed), MaxLogged)] {
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
			list = append(list, workDiffers(join(path, s.key), s.value, other[i].value, secret || s.Secret)...)
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

// ChangedSettings names the settings in which two configurations differ, apart from jobs, their
// defaults, and the revision.
func ChangedSettings(was, is *Config) (names []string) {
	other := Leaves(is)
	for i, l := range Leaves(was) {
		if !strings.HasPrefix(l.Path, "defaults.") && l.Path != "node.revision" && !alike(l.value, other[i].value) {
			names = append(names, l.Path)
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
