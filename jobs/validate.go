package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// Limits of a job's settings.
const (
	// MinTTL is three times the default clock bound of 1 s.
	MinTTL = 3 * time.Second
	// MaxTTL bounds how long a run that vanished can hold its job.
	MaxTTL = time.Hour
	// MaxShards bounds the parts of one tick.
	MaxShards = 1024

	maxLabels     = 64
	maxLabelValue = 256
)

var (
	namePattern  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,127}$`)
	labelPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/-]{0,62}$`)
)

// FieldError is one fault of a job.
type FieldError struct {
	// Field is the setting's path inside the job, spelt as in config.yaml: "retry.max".
	Field string
	// Msg says what is wrong and how to mend it.
	Msg string
}

// Error returns "field: message".
func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

// faults collects the faults of one job, in the order of config.yaml.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
}

// Validate checks the settings and how they go together. The error joins one *FieldError
// for each fault, all of them at once. Empty settings that WithDefaults would fill count
// as their defaults.
func (j Job) Validate() error {
	var f faults
	if !namePattern.MatchString(j.Name) {
		f.add("name", "%q is not a job name; use 1 to 128 letters, digits and . _ : / -, the first a letter or digit",
			clip(j.Name))
	}
	j.checkSchedule(&f)
	if j.Func == nil {
		f.add("func", "is missing; a job needs a function to call")
	}
	j.checkPolicies(&f)
	checkDuration(&f, "timeout", j.Timeout)
	if j.TTL != 0 {
		if checkDuration(&f, "ttl", j.TTL) && (j.TTL < MinTTL || j.TTL > MaxTTL) {
			f.add("ttl", "%v is outside %v to %v; %v is the default", j.TTL, MinTTL, MaxTTL, DefaultTTL)
		}
	}
	j.checkRetry(&f)
	j.checkShards(&f)
	j.checkLabels(&f)
	if j.After != "" {
		f.add("after", "%q: running after another job is not there yet; leave it out", clip(j.After))
	}
	return errors.Join(f...)
}

func (j Job) checkSchedule(f *faults) {
	zone := j.TimeZone
	if zone != "" {
		if _, err := loadZone(zone); err != nil {
			f.add("time_zone", "%v", err)
			zone = ""
		}
	}
	if _, err := ParseSchedule(j.Schedule, zone); err != nil {
		f.add("schedule", "%v", err)
	}
}

func (j Job) checkPolicies(f *faults) {
	checkPolicy(f, overlapWords, uint8(j.Overlap))
	checkPolicy(f, catchUpWords, uint8(j.CatchUp))
	notYet(f, "catch_up_max", j.CatchUpMax)
	notYet(f, "start_within", j.StartWithin)
	checkPolicy(f, onCrashWords, uint8(j.OnCrash))
	notYet(f, "rerun_max", j.RerunMax)
	checkPolicy(f, placementWords, uint8(j.Placement))
}

func (j Job) checkRetry(f *faults) {
	notYet(f, "retry.max", j.Retry.Max)
	notYet(f, "retry.backoff", j.Retry.Backoff)
	notYet(f, "retry.max_backoff", j.Retry.MaxBackoff)
}

func (j Job) checkShards(f *faults) {
	switch {
	case j.Shards < 0 || j.Shards > MaxShards:
		f.add("shards", "%d is outside 1 to %d", j.Shards, MaxShards)
	case j.Shards > 1:
		f.add("shards", "%d is not there yet; use 1", j.Shards)
	}
	if len(j.Params) > 0 {
		f.add("params", "one parameter for each shard is not there yet; leave it out")
	}
}

func (j Job) checkLabels(f *faults) {
	if len(j.Labels) > maxLabels {
		f.add("labels", "%d labels are more than %d", len(j.Labels), maxLabels)
	}
	keys := make([]string, 0, len(j.Labels))
	for k := range j.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !labelPattern.MatchString(k) {
			f.add("labels", "%q is not a label; use 1 to 63 letters, digits and . _ / -, the first a letter or digit",
				clip(k))
		}
		if v := j.Labels[k]; len(v) > maxLabelValue || !utf8.ValidString(v) {
			f.add("labels."+clip(k), "the value must be UTF-8 text of at most %d bytes", maxLabelValue)
		}
	}
}

// checkPolicy refuses every value but the default, the first: this version has no other.
func checkPolicy(f *faults, e enum, v uint8) {
	switch {
	case !e.known(v):
		f.add(e.kind, "value %d is not known; use one of %s", v, e.list())
	case v != 0:
		f.add(e.kind, "%s is not there yet; use %s", e.words[v], e.words[0])
	}
}

// notYet refuses a setting that this version does not carry out.
func notYet[T int | time.Duration](f *faults, field string, v T) {
	if v != 0 {
		f.add(field, "%v is not there yet; leave it out", v)
	}
}

// checkDuration reports whether d can be stored: not negative, whole milliseconds.
func checkDuration(f *faults, field string, d time.Duration) bool {
	switch {
	case d < 0:
		f.add(field, "%v is negative; use 0 or more", d)
	case d%time.Millisecond != 0:
		f.add(field, "%v is not a whole number of milliseconds", d)
	default:
		return true
	}
	return false
}

// clip keeps a value that may be of any length readable in an error text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
