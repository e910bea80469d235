package notify

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TargetsMost bounds the targets of a Notifier.
const TargetsMost = 32

var targetPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate checks the settings. The error joins a *jobs.FieldError for each fault, with fields such
// as targets[0].webhook.url.
func (c Config) Validate() error {
	var errs []error
	add := func(field, format string, args ...any) {
		errs = append(errs, &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
	}
	d := c.withDefaults()
	for _, s := range []struct {
		field        string
		d, low, high time.Duration
	}{{"every", d.Every, time.Second, time.Hour}, {"group_for", d.GroupFor, 0, time.Hour}, {"late_after", d.LateAfter, 10 * time.Second, 24 * time.Hour}} {
		if s.d < s.low || s.d > s.high {
			add(s.field, "%v is outside %v to %v", s.d, s.low, s.high)
		}
	}
	if d.AtMost < 1 || d.AtMost > 1000 {
		add("at_most", "%d messages an hour are outside 1 to 1000", d.AtMost)
	}
	if n := len(c.Targets); n == 0 || n > TargetsMost {
		add("targets", "%d targets are outside 1 to %d", n, TargetsMost)
	}
	names := map[string]bool{}
	for i, t := range c.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		if names[t.Name] {
			add(at+".name", "%q is the name of another target already; give one of them another name", t.Name)
		}
		names[t.Name] = true
		for _, f := range t.faults() {
			add(at+f.Field, "%s", f.Msg)
		}
	}
	return errors.Join(errs...)
}

// Validate checks a target by itself. The error joins a *jobs.FieldError for each fault, with
// fields such as webhook.url, or "" for the target as a whole.
func (t Target) Validate() error {
	var errs []error
	for _, f := range t.faults() {
		f.Field = strings.TrimPrefix(f.Field, ".")
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

func (t Target) faults() (list []*jobs.FieldError) {
	add := func(field, format string, args ...any) {
		list = append(list, &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
	}
	if !targetPattern.MatchString(t.Name) {
		add(".name", "%q is not a target's name; use 1 to 64 letters, digits and . _ -, the first a letter or digit", line(t.Name, 64))
	}
	if _, err := path.Match(t.Jobs, ""); err != nil || len(t.Jobs) > 256 {
		add(".jobs", "%q is not a pattern of job names; write one such as billing/*", line(t.Jobs, 64))
	}
	for i, kind := range t.On {
		if !slices.Contains(Kinds, kind) {
			add(fmt.Sprintf(".on[%d]", i), "%q is no event; use some of %s", line(string(kind), 64), kindWords())
		}
	}
	ways := 0
	for _, given := range []bool{t.Webhook != nil, len(t.Command) > 0, t.Func != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		add("", "it has %d ways to be told; give it one: webhook: {url: ...}, or command: [./tell]", ways)
	}
	if t.Webhook != nil {
		for _, f := range t.Webhook.faults() {
			add(".webhook."+f.Field, "%s", f.Msg)
		}
	}
	if len(t.Command) > 0 && (t.Command[0] == "" || strings.Contains(strings.Join(t.Command, ""), "\x00")) {
		add(".command", "write the program and its arguments, such as [./tell, team-a], without NUL characters")
	}
	return list
}

func kindWords() string {
	var words []string
	for _, k := range Kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

func matches(pattern, job string) bool {
	ok, _ := path.Match(pattern, job) // checked before
	return ok
}
