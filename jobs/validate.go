package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// Limits of a job's settings.
const (
	// minTTL is three times the default margin of a lease, 1 s.
	minTTL = 3 * time.Second
	// maxTTL bounds how long the run of a dead node holds its job.
	maxTTL = time.Hour
	// MaxShards is the largest Job.Shards.
	MaxShards = 1024
	// MaxCatchUp is the largest Job.CatchUpMax.
	MaxCatchUp = 10_000
	// MaxReruns is the largest Job.RerunMax.
	MaxReruns = 100
	// MaxLimit is the largest Limit.Max.
	MaxLimit   = 1000
	maxRetries = 100 // Retry.Max
	maxBackoff = 24 * time.Hour
	maxExpect  = 366 * 24 * time.Hour // Expect.SuccessWithin

	maxPayload = 16 << 10

	maxLabels     = 64
	maxParam      = 256
	maxLabelValue = 256
)

// nameForm describes namePattern.
const nameForm = "use 1 to 128 letters, digits and . _ : / -, the first a letter or digit"

var (
	namePattern  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,127}$`)
	labelPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/-]{0,62}$`)
)

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

// Validate checks the settings, and their combination. The error joins a *FieldError for each fault. Empty settings that
// WithDefaults would fill count as their defaults. Registry.Check checks several jobs together.
func (j Job) Validate() error {
	j = j.WithDefaults(Defaults{})
	var f faults
	if !namePattern.MatchString(j.Name) {
		f.add("name", "%q is not a job name; %s", clip(j.Name), nameForm)
	}
	j.checkSchedule(&f)
	j.checkMaxRuns(&f)
	j.checkFunc(&f)
	checkWord(&f, overlapWords, uint8(j.Overlap))
	j.checkCatchUp(&f)
	checkDuration(&f, "start_within", j.StartWithin)
	j.checkOnCrash(&f)
	checkDuration(&f, "timeout", j.Timeout)
	j.checkStall(&f)
	if checkDuration(&f, "ttl", j.TTL) && (j.TTL < minTTL || j.TTL > maxTTL) {
		f.add("ttl", "%v is outside %v to %v; %v is the default", j.TTL, minTTL, maxTTL, defaultTTL)
	}
	j.Retry.check(&f)
	j.Retry.checkOn(&f)
	j.checkTryTimeout(&f)
	j.checkShards(&f)
	j.checkPlacement(&f)
	j.checkLabels(&f)
	j.checkAfter(&f)
	j.Limit.check(&f)
	if j.Guard != "" && !namePattern.MatchString(j.Guard) {
		f.add("guard", "%q is not a guard's name; %s", clip(j.Guard), nameForm)
	}
	if d := j.Expect.SuccessWithin; checkDuration(&f, "expect.success_within", d) && d > maxExpect {
		f.add("expect.success_within", "%v is more than a year; use at most %v", d, maxExpect)
	}
	return errors.Join(f...)
}

// checkFunc checks what is called, and with what.
func (j Job) checkFunc(f *faults) {
	switch {
	case j.Handler != "" && !namePattern.MatchString(j.Handler):
		f.add("handler", "%q is not a handler's name; %s", clip(j.Handler), nameForm)
	case j.Func == nil && j.Handler != "":
		f.add("handler", "there is no handler %q here; add it with Registry.Handle", j.Handler)
	case j.Func == nil:
		f.add("func", "is missing; a job needs a function to call, or the name of a handler")
	}
	switch {
	case len(j.Payload) == 0:
	case j.Handler == "":
		f.add("payload", "is not used: only a handler is given one; leave it out, or name a handler")
	case len(j.Payload) > maxPayload:
		f.add("payload", "%d bytes are more than %d; store it elsewhere and pass its address", len(j.Payload), maxPayload)
	case !json.Valid(j.Payload):
		f.add("payload", "is no JSON")
	}
	switch {
	case j.ManagedBy == "":
	case j.Handler == "":
		f.add("managed_by", "is not used: only a stored job is kept with others; leave it out, or name a handler")
	case !namePattern.MatchString(j.ManagedBy):
		f.add("managed_by", "%q is not a name; %s", clip(j.ManagedBy), nameForm)
	}
}

func (j Job) checkCatchUp(f *faults) {
	known := checkWord(f, catchUpWords, uint8(j.CatchUp))
	if known && len(j.After) > 0 && j.CatchUp != CatchUpLatest {
		f.add("catch_up", "%v is not used: a job with after has no schedule whose ticks it could miss; leave it out", j.CatchUp)
	}
	checkCount(f, "catch_up_max", j.CatchUpMax, MaxCatchUp, j.CatchUp == CatchUpAll, "catch_up: all")
}

func (j Job) checkOnCrash(f *faults) {
	checkWord(f, onCrashWords, uint8(j.OnCrash))
	checkCount(f, "rerun_max", j.RerunMax, MaxReruns, j.OnCrash == OnCrashRerun, "on_crash: rerun")
}

func (r Retry) check(f *faults) {
	if r.Max < 0 || r.Max > maxRetries {
		f.add("retry.max", "%d is outside 0 to %d", r.Max, maxRetries)
	}
	if r.Max <= 0 {
		r.unused(f, "retry.backoff", r.Backoff)
		r.unused(f, "retry.max_backoff", r.MaxBackoff)
		return
	}
	first := checkBackoff(f, "retry.backoff", r.Backoff)
	most := checkBackoff(f, "retry.max_backoff", r.MaxBackoff)
	if first && most && r.MaxBackoff < r.Backoff {
		f.add("retry.max_backoff", "%v is less than retry.backoff, %v; raise the one or lower the other",
			r.MaxBackoff, r.Backoff)
	}
}

// unused refuses a backoff without retries.
func (r Retry) unused(f *faults, field string, d time.Duration) {
	if d != 0 && r.Max == 0 {
		f.add(field, "%v is only used with retry.max above 0; set that or leave this out", d)
	}
}

func (j Job) checkShards(f *faults) {
	if j.Shards < 0 || j.Shards > MaxShards {
		f.add("shards", "%d is outside 1 to %d", j.Shards, MaxShards)
	}
	if n := len(j.Params); n > 0 && n != max(j.Shards, 1) {
		f.add("params", "%d for %d shards; give each shard one, or leave them out", n, max(j.Shards, 1))
	}
	for i, p := range j.Params {
		if len(p) > maxParam || !utf8.ValidString(p) {
			f.add(fmt.Sprintf("params[%d]", i), "must be UTF-8 text of at most %d bytes", maxParam)
		}
	}
}

func (l Limit) check(f *faults) {
	switch {
	case l.Group == "" && l.Max != 0:
		f.add("limit.group", "is missing, and limit.max is %d; name the group of jobs", l.Max)
	case l.Group == "":
	case !namePattern.MatchString(l.Group):
		f.add("limit.group", "%q is not a group's name; %s", clip(l.Group), nameForm)
	case l.Max < 1 || l.Max > MaxLimit:
		f.add("limit.max", "%d is outside 1 to %d", l.Max, MaxLimit)
	}
}

func (j Job) checkPlacement(f *faults) {
	checkWord(f, placementWords, uint8(j.Placement))
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

// checkWord reports whether a policy's value is one of its words.
func checkWord(f *faults, e enum, v uint8) bool {
	if !e.known(v) {
		f.add(e.kind, "value %d is not known; use one of %s", v, e.list())
	}
	return e.known(v)
}

// checkCount checks a number that belongs to a policy: 1 to most with it, 0 without it.
func checkCount(f *faults, field string, n, most int, used bool, policy string) {
	switch {
	case used && (n < 1 || n > most):
		f.add(field, "%d is outside 1 to %d", n, most)
	case !used && n != 0:
		f.add(field, "%d is only used with %s; choose that or leave this out", n, policy)
	}
}

// checkBackoff reports whether d can be the wait between two tries.
func checkBackoff(f *faults, field string, d time.Duration) bool {
	if !checkDuration(f, field, d) {
		return false
	}
	if d > maxBackoff {
		f.add(field, "%v is more than %v", d, maxBackoff)
		return false
	}
	return true
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

// clip shortens a value for an error text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
