package config

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// checker judges a configuration as a whole. A setting whose text could not even
// be read has its fault already and is not judged again.
type checker struct {
	*Loaded
	faults Faults

	jobLabels, targetLabels []string

	badCalendars map[string]bool // those with a fault
}

func (c *checker) fault(path, format string, args ...any) {
	if !c.faults.has(path) {
		c.faults.Add(c.From.Of(path), path, format, args...)
	}
}

// connection judges the settings that a tool needs.
func (c *checker) connection() {
	c.namespace()
	c.redis()
	c.node()
	c.listen()
	c.access()
	c.locks()
}

func (c *checker) check() {
	c.connection()
	c.next()
	c.whole("http.metrics_jobs", c.HTTP.MetricsJobs, 0, 100_000)
	c.whole("history.keep", c.History.Keep, 16, 100_000)
	c.span("history.keep_for", c.History.KeepFor, time.Minute, 8760*time.Hour)
	c.defaults()
	c.notify()
	c.calendars()
	c.allHandlers()
	c.allJobs()
}

// whole checks that a number is within its limits.
func (c *checker) whole(path string, n, low, high int) {
	if n < low || n > high {
		c.fault(path, "%d is outside %d to %d", n, low, high)
	}
}

// span checks that a duration is within its limits, in whole milliseconds.
func (c *checker) span(path string, d, low, high time.Duration) {
	if d < low || d > high {
		c.fault(path, "%s is outside %s to %s", spec.FormatDuration(d), spec.FormatDuration(low), spec.FormatDuration(high))
	} else if d%time.Millisecond != 0 {
		c.fault(path, "%s is not a whole number of milliseconds", d)
	}
}

var (
	namespacePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	nodePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)
)

func (c *checker) namespace() {
	if !namespacePattern.MatchString(c.Namespace) {
		c.fault("namespace", "%s is not a namespace; use 1 to 64 letters, digits and . _ -, the first a letter or digit", print.Quote(c.Namespace))
	}
}

func (c *checker) redis() {
	r := c.Redis
	c.mode()
	c.whole("redis.partitions", r.Partitions, 0, 1024)
	c.whole("redis.replicas", r.Replicas, 0, 200)
	if r.Replicas > 0 && r.Confirm == "none" { // another word is a fault by itself
		c.fault("redis.replicas", "%d says nothing without redis.confirm: replicas; set that, or leave this out", r.Replicas)
	}
}

func (c *checker) node() {
	n := c.Node
	if n.Name != "" && !nodePattern.MatchString(n.Name) {
		c.fault("node.name", "%s is not a node's name; use 1 to 128 letters, digits and . _ : / -, the first a letter or digit", print.Quote(n.Name))
	}
	if len(n.Revision) > 128 || slices.ContainsFunc([]rune(n.Revision), unicode.IsControl) {
		c.fault("node.revision", "%s is not a revision; use at most 128 bytes and no control characters", print.Quote(n.Revision))
	}
	if n.Generation != "" && !namespacePattern.MatchString(n.Generation) {
		c.fault("node.generation", "%s is not a generation; use at most 64 letters, digits and . _ -, the first a letter or digit, or nothing", print.Quote(n.Generation))
	}
	for _, f := range FieldErrors(probe(jobs.Job{Labels: n.Labels})) { // the jobs package has the rule for labels
		c.fault("node."+f.Field, "%s", f.Msg)
	}
	c.whole("node.weight", n.Weight, 1, 1000)
	c.whole("node.max_running", n.MaxRunning, 1, 100_000)
	c.span("node.grace", n.Grace, 10*time.Millisecond, time.Minute)
	if _, err := n.Ahead(); err != nil {
		c.fault("node.claim_ahead", "%s", err)
	}
	c.span("node.sweep_every", n.SweepEvery, 10*time.Millisecond, time.Minute)
	c.span("node.max_skew", n.MaxSkew, 100*time.Millisecond, time.Minute)
	c.span("node.max_step", n.MaxStep, 100*time.Millisecond, 24*time.Hour)
	if n.MaxStep < n.MaxSkew {
		c.fault("node.max_step", "%s is less than node.max_skew, %s", spec.FormatDuration(n.MaxStep), spec.FormatDuration(n.MaxSkew))
	}
	c.span("node.failover_hold", n.FailoverHold, 100*time.Millisecond, time.Minute)
	c.span("node.drain_timeout", n.DrainTimeout, time.Millisecond, 24*time.Hour)
}

// basePath is some segments, each behind a slash.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

func (c *checker) listen() {
	if !basePath.MatchString(c.HTTP.BasePath) {
		c.fault("http.base_path", "%s is no path such as /ops: a slash before each part, none at the end; letters, digits and . _ ~ -", print.Quote(c.HTTP.BasePath))
	}
	if c.HTTP.Listen == "" {
		return
	}
	_, port, err := net.SplitHostPort(c.HTTP.Listen)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || n < 0 || n > 65535 {
		c.fault("http.listen", "%s is not HOST:PORT; write one like 127.0.0.1:8080, or \"\" for none", print.Quote(c.HTTP.Listen))
	}
}

// probe validates a job that can have faults only in the given settings.
func probe(j jobs.Job) error {
	j.Name, j.Schedule, j.Func = "probe", "@hourly", noWork
	return j.Validate()
}

// FieldErrors separates the errors that Validate joined; several faults of one field come as one.
// Any other error in it is a slip of this program and stays visible as a fault without a field.
func FieldErrors(err error) (list []*jobs.FieldError) {
	if err == nil {
		return nil
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, e := range errs {
		var f *jobs.FieldError
		if !errors.As(e, &f) {
			f = &jobs.FieldError{Msg: fmt.Sprint(e)}
		}
		if last := len(list) - 1; last >= 0 && list[last].Field == f.Field && list[last].Job == f.Job {
			f = &jobs.FieldError{Job: f.Job, Field: f.Field, Msg: list[last].Msg + "; " + f.Msg}
			list = list[:last]
		}
		list = append(list, f)
	}
	return list
}
