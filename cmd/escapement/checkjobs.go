package main

import (
	"context"
	"encoding"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
)

// noWork stands in for what a job does where only the rest of it is judged.
func noWork(context.Context, *jobs.Run) error { return nil }

// defaults judges the defaults by themselves, so that a bad one is told once and
// not for every job.
func (c *checker) defaults() {
	d := c.Defaults
	j := jobs.Job{TTL: d.TTL, TimeZone: d.TimeZone}
	c.policy("defaults.overlap", d.Overlap, &j.Overlap)
	c.policy("defaults.catch_up", d.CatchUp, &j.CatchUp)
	for _, f := range fieldErrors(probe(j)) {
		c.fault("defaults."+f.Field, "%s", f.Msg)
	}
	c.leaseTime("defaults.ttl", d.TTL)
	if d.TimeZone == "" {
		c.fault("defaults.time_zone", "is empty; write UTC or a name such as Europe/Berlin")
	}
}

// leaseTime holds a lease time against the clock bound it must outlast.
func (c *checker) leaseTime(path string, ttl time.Duration) {
	if ttl < 3*c.Node.MaxSkew {
		c.fault(path, "%s is less than three times node.max_skew, %s", shortDuration(ttl), shortDuration(c.Node.MaxSkew))
	}
}

// policy reads a policy's word; "" leaves the default.
func (c *checker) policy(path, word string, into encoding.TextUnmarshaler) {
	if word == "" {
		return
	}
	if err := into.UnmarshalText([]byte(word)); err != nil {
		c.fault(path, "%v", err)
	}
}

// inherited is a job's own word, or that of the defaults unless it was refused there.
func (c *checker) inherited(own, key, byDefault string) string {
	if own == "" && !c.faults.has("defaults."+key) {
		return byDefault
	}
	return own
}

// allJobs turns the entries into jobs and judges each.
func (c *checker) allJobs() {
	first := map[string]string{}
	for i, entry := range c.Jobs {
		path := "jobs[" + c.jobLabels[i] + "]"
		if c.faults.has(path) {
			continue // not even a section
		}
		j := c.job(path, entry)
		if at, twice := first[j.Name]; twice && j.Name != "" {
			c.fault(path+".name", "%s is the name of the job at line %d already; give one of them another name",
				quote(j.Name), c.from.of(at).line)
		} else {
			first[j.Name] = path + ".name"
		}
		c.jobs = append(c.jobs, j)
	}
}

// job judges one entry. A fault in a value that came from the defaults was told there.
func (c *checker) job(path string, e Job) jobs.Job {
	j := jobs.Job{
		Name: e.Name, Schedule: e.Schedule, TimeZone: e.TimeZone, CatchUpMax: e.CatchUpMax,
		StartWithin: e.StartWithin, RerunMax: e.RerunMax, Timeout: e.Timeout, TTL: e.TTL,
		Retry:  jobs.Retry{Max: e.Retry.Max, Backoff: e.Retry.Backoff, MaxBackoff: e.Retry.MaxBackoff},
		Shards: e.Shards, Params: e.Params, Labels: e.Labels, After: e.After,
	}
	c.policy(path+".overlap", c.inherited(e.Overlap, "overlap", c.Defaults.Overlap), &j.Overlap)
	c.policy(path+".catch_up", c.inherited(e.CatchUp, "catch_up", c.Defaults.CatchUp), &j.CatchUp)
	c.policy(path+".on_crash", e.OnCrash, &j.OnCrash)
	c.policy(path+".placement", e.Placement, &j.Placement)
	j = j.WithDefaults(jobs.Defaults{TTL: c.Defaults.TTL, TimeZone: c.Defaults.TimeZone})
	j.Func = c.work(path, e)
	for _, f := range fieldErrors(j.Validate()) {
		if c.from.given(path+"."+f.Field) || !c.faults.has("defaults."+f.Field) {
			c.fault(path+"."+f.Field, "%s", f.Msg)
		}
	}
	c.zeroes(path, e)
	if c.from.given(path + ".ttl") {
		c.leaseTime(path+".ttl", j.TTL)
	}
	return j
}

// zeroes refuses a written 0 where jobs takes 0 for "not given".
func (c *checker) zeroes(path string, e Job) {
	if e.TTL == 0 && c.from.given(path+".ttl") {
		c.fault(path+".ttl", "0 is not a lease time; leave it out for the default")
	}
	if e.Shards == 0 && c.from.given(path+".shards") {
		c.fault(path+".shards", "0 is outside 1 to %d; leave it out for 1", jobs.MaxShards)
	}
}

// work builds what the job does. A job with no good work gets noWork, so that its
// other faults are told too.
func (c *checker) work(path string, e Job) jobs.Func {
	switch {
	case bool(e.HTTP) && e.Exec != nil:
		c.fault(path+".http", "exec is given too; a job does one thing: keep one of them")
	case bool(e.HTTP):
		c.fault(path+".http", "HTTP jobs are not there yet; use exec with a command such as curl")
	case e.Exec == nil && !c.faults.has(path+".exec"):
		c.fault(path, "does nothing; give it work: exec: {command: [sh, -c, \"echo hello\"]}")
	}
	if e.Exec == nil {
		return noWork
	}
	command := execjob.Command{Command: e.Exec.Command, Dir: e.Exec.Dir, Env: e.Exec.Env}
	for _, f := range fieldErrors(command.Validate()) {
		c.fault(path+".exec."+f.Field, "%s", f.Msg)
	}
	return execjob.New(command)
}
