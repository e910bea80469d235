package jobs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/jobs/spec"
)

// Limits of the elements of a job's settings; limits of the settings stand in their table.
const (
	maxParam      = 256 // bytes
	maxLabelValue = 256 // bytes
)

// nameForm describes a name.
const nameForm = spec.NameForm

var labelPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/-]{0,62}$`)

// FieldError is a fault in one setting of a job.
type FieldError struct {
	// Job is the name of the job, from Registry.Check; else it is empty.
	Job string
	// Field is the setting's path inside the job, spelt as in config.yaml: "retry.max".
	Field string
	// Msg is the fault and its correction.
	Msg string
}

// Error returns "field: message", with the job's name before it if there is one.
func (e *FieldError) Error() string {
	if e.Job != "" {
		return fmt.Sprintf("job %q: %s: %s", e.Job, e.Field, e.Msg)
	}
	return e.Field + ": " + e.Msg
}

// faults collects the faults of one job, in the order of config.yaml.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
}

// has reports whether one of several settings, or an element of one, has a fault.
func (f *faults) has(settings ...string) bool {
	return slices.ContainsFunc(*f, func(err error) bool {
		fault := new(FieldError)
		if !errors.As(err, &fault) {
			return false
		}
		setting, _, _ := strings.Cut(fault.Field, "[")
		return slices.Contains(settings, setting)
	})
}

// Validate checks the settings, and their combination. The error joins a *FieldError for each
// fault. Empty settings that WithDefaults would fill count as their defaults. Registry.Check checks
// several jobs together.
func (j Job) Validate() error {
	j = j.WithDefaults(Defaults{})
	var f faults
	Settings.Check(&j, func(field, msg string) { f.add(field, "%s", msg) }, func(s spec.Setting) {
		if check, some := relations[s.Name]; some {
			check(j, &f)
		}
	})
	return errors.Join(f...)
}

// relations are the checks outside of the table: texts that have a syntax, and settings against
// each other. Each is called after the checks of its single setting.
var relations = map[string]func(Job, *faults){
	"jitter":            Job.checkSchedule, // the last of the settings that bound it
	"retry.max_backoff": Job.checkBackoffs,
	"retry.try_timeout": Job.checkTryTimeout,
	"params":            Job.checkParams,
	"labels":            Job.checkLabels,
	"after":             Job.checkAfter,
	"handler":           Job.checkFunc,
}

// checkFunc checks that there is something to call.
func (j Job) checkFunc(f *faults) {
	switch {
	case j.Func != nil || f.has("handler"):
	case j.Handler != "":
		f.add("handler", "there is no handler %q here; add it with Registry.Handle", clip(j.Handler))
	default:
		f.add("func", "is missing; a job needs a function to call, or the name of a handler")
	}
}

func (j Job) checkBackoffs(f *faults) {
	if r := j.Retry; r.Max > 0 && r.MaxBackoff < r.Backoff && !f.has("retry.backoff", "retry.max_backoff") {
		f.add("retry.max_backoff", "%s is less than retry.backoff, %s; raise the one or lower the other",
			spec.FormatDuration(r.MaxBackoff), spec.FormatDuration(r.Backoff))
	}
}

// checkTryTimeout checks the timeout of each try, which Timeout of the job covers.
func (j Job) checkTryTimeout(f *faults) {
	if d := j.Retry.Timeout; j.Timeout > 0 && d >= j.Timeout && !f.has("retry.try_timeout", "timeout") {
		f.add("retry.try_timeout", "%s is not below timeout, %s, which covers all tries; lower the one or raise the other",
			spec.FormatDuration(d), spec.FormatDuration(j.Timeout))
	}
}

func (j Job) checkParams(f *faults) {
	if n := len(j.Params); n > 0 && n != max(j.Shards, 1) {
		f.add("params", "%d for %d shards; give each shard one, or leave them out", n, max(j.Shards, 1))
	}
	for i, p := range j.Params {
		if len(p) > maxParam || !utf8.ValidString(p) {
			f.add(fmt.Sprintf("params[%d]", i), "must be UTF-8 text of at most %d bytes", maxParam)
		}
	}
}

func (j Job) checkLabels(f *faults) {
	for _, k := range slices.Sorted(maps.Keys(j.Labels)) {
		if !labelPattern.MatchString(k) {
			f.add("labels", "%q is not a label; use 1 to 63 letters, digits and . _ / -, the first a letter or digit",
				clip(k))
		}
		if v := j.Labels[k]; len(v) > maxLabelValue || !utf8.ValidString(v) {
			f.add("labels."+clip(k), "the value must be UTF-8 text of at most %d bytes", maxLabelValue)
		}
	}
}

// clip shortens a value for an error text.
func clip(s string) string { return spec.Clip(s) }

// checkSchedule checks schedule and after, and the bounds of its ticks. With both, the fault is one
// of after, and the schedule is not checked.
func (j Job) checkSchedule(f *faults) {
	zone := j.TimeZone
	if err := cron.CheckZone(zone); err != nil {
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
	if j.bounds().IsSet() && !f.has("schedule", "time_zone", "except", "only", "start_at", "end_at", "jitter") {
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
			if err := cron.CheckDate(text); err != nil {
				f.add(fmt.Sprintf("%s[%d]", list.field, i), "%v", err)
			}
		}
	}
	if n := len(j.Except) + len(j.Only); n > cron.MaxDates {
		f.add("except", "except and only have %d dates and ranges, more than %d; join neighbouring days to ranges", n, cron.MaxDates)
	}
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"start_at", j.StartAt}, {"end_at", j.EndAt}} {
		if err := cron.CheckInstant(bound.at); err != nil && !bound.at.IsZero() && !f.has(bound.field) {
			f.add(bound.field, "%v", err)
		}
	}
	if !j.StartAt.IsZero() && !j.EndAt.IsZero() && j.EndAt.Before(j.StartAt) {
		f.add("end_at", "%s is before start_at, %s; move one of them", cron.FormatInstant(j.EndAt), cron.FormatInstant(j.StartAt))
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
	if !s.TicksSoon(now) {
		f.add(field, "leaves no tick in the next %d years; choose days on which the schedule has a tick", cron.MaxPause)
	}
}

func (j Job) checkAfter(f *faults) {
	if j.Schedule != "" && len(j.After) > 0 {
		f.add("after", "%q does not go with the schedule %q: one of them says when the job runs; keep that one",
			clip(strings.Join(j.After, ", ")), clip(j.Schedule))
	}
	for i, name := range j.After {
		switch {
		case !spec.IsName(name):
			f.add("after", "%q is not a job name; %s", clip(name), nameForm)
		case slices.Contains(j.After[:i], name):
			f.add("after", "%q stands there twice; name it once", name)
		}
	}
}
