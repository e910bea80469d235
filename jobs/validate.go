package jobs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs/spec"
)

// Limits of what the elements of a job's settings may be; those of the settings stand in their table.
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
	// Msg says what is wrong and how to correct it.
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

// Validate checks the settings, and their combination. The error joins a *FieldError for each fault. Empty settings that
// WithDefaults would fill count as their defaults. Registry.Check checks several jobs together.
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

// relations check what the table cannot: texts that have a syntax, and settings against each other. Each is called behind the checks of
// its setting by itself.
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
