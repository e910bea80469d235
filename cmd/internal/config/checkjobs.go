package config

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
	"github.com/escapement/escapement/jobs/httpjob"
	"github.com/escapement/escapement/jobs/spec"
)

// noWork is the function of jobs whose other settings are judged.
func noWork(context.Context, *jobs.Run) error { return nil }

// defaults judges the defaults by themselves, so that a bad one is reported once and not for every
// job.
func (c *checker) defaults() {
	d := c.Defaults
	for _, f := range FieldErrors(probe(jobs.Job{TTL: d.TTL, TimeZone: d.TimeZone})) {
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
		c.fault(path, "%s is less than three times node.max_skew, %s", spec.FormatDuration(ttl), spec.FormatDuration(c.Node.MaxSkew))
	}
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
			c.fault(path+".name", "%s is the name of the job at %s already; give one of them another name",
				print.Quote(j.Name), c.From.Of(at).seenFrom(c.From.Of(path)))
		} else {
			first[j.Name] = path + ".name"
		}
		c.JobList = append(c.JobList, j)
	}
	c.together(first)
}

// together judges how the jobs follow each other, and their groups, with every other setting
// replaced by a valid one. paths has the place of each name.
func (c *checker) together(paths map[string]string) {
	reg := jobs.NewRegistry()
	ticks := func(j jobs.Job) jobs.Job {
		return jobs.Job{Name: "a", Schedule: j.Schedule, TimeZone: j.TimeZone, Except: j.Except, Only: j.Only, StartAt: j.StartAt, EndAt: j.EndAt, Func: noWork}
	}
	odd := slices.ContainsFunc(c.JobList, func(j jobs.Job) bool { return len(j.After) == 0 && ticks(j).Validate() != nil })
	for _, j := range c.JobList {
		plain := jobs.Job{Schedule: "@hourly"} // where a schedule is wrong, none are compared
		if !odd && len(j.After) == 0 {
			plain = ticks(j)
		}
		plain.Name, plain.Func, plain.Limit = j.Name, noWork, j.Limit
		if plain.Validate() != nil {
			plain.Limit = jobs.Limit{} // already reported
		}
		if len(j.After) > 0 {
			follower := plain
			follower.Schedule, follower.TimeZone, follower.After = "", "", j.After
			if reg.Add(follower) == nil {
				continue
			}
		}
		// A refused name was already reported, and so was an after.
		_ = reg.Add(plain)
	}
	for _, f := range FieldErrors(reg.Check()) {
		c.fault(parentPath(paths[f.Job])+"."+f.Field, "%s", f.Msg)
	}
}

// job judges one entry. A fault in a default value was reported with the defaults.
func (c *checker) job(path string, e jobEntry) jobs.Job {
	j := c.Defaults.words(e)
	j.Except, j.Only = c.dates(path+".except", j.Except), c.dates(path+".only", j.Only)
	jobs.Settings.Idle(&j)
	j = j.WithDefaults(jobs.Defaults{TTL: c.Defaults.TTL, TimeZone: c.Defaults.TimeZone})
	j.Func = c.work(path, e.work)
	c.results(path, e)
	moot := c.moot(path)
	for _, f := range FieldErrors(j.Validate()) {
		toldAbove := c.faults.has("defaults."+f.Field) && !c.From.given(path+"."+f.Field)
		if !toldAbove && !moot[f.Field] {
			c.fault(path+"."+f.Field, "%s", f.Msg)
		}
	}
	if j.Guard != "" && j.Guard != c.Locks.Driver && c.From.Of("locks.driver").Name != driverFlag { // the flag is not for jobs
		c.fault(path+".guard", "%s is not locks.driver, which is %s", print.Quote(j.Guard), c.Locks.Driver)
	}
	c.zeroes(path, e)
	if least := 2 * (j.Shards + 1); j.Shards > 1 && !c.faults.has(path+".shards") && c.History.Keep < least && !c.faults.has("history.keep") {
		c.fault(path+".shards", "one tick makes %d rows of history, and history.keep is %d; make that at least %d", j.Shards+1, c.History.Keep, least)
	}
	if c.From.given(path + ".ttl") {
		c.leaseTime(path+".ttl", j.TTL)
	}
	return j
}

// moot are the settings that cannot be judged, because the one they go with could not be read.
func (c *checker) moot(path string) map[string]bool {
	set := map[string]bool{"schedule": c.faults.has(path + ".after")}
	for _, s := range spec.All() {
		if with, _, _ := strings.Cut(s.With, ": "); with != "" {
			set[s.Name] = c.faults.has(path+"."+with) || c.faults.has("defaults."+with)
		}
	}
	return set
}

// zeroes refuses a written 0 where jobs takes 0 for "not given". For a setting without a greatest
// value 0 means never.
func (c *checker) zeroes(path string, e jobEntry) {
	for _, s := range spec.All() {
		if at := path + "." + s.Name; s.Min > 0 && s.Max > 0 && e.given(s.Name) && !jobs.Settings.Given(&e.settings, s) && !c.faults.has(at) {
			c.fault(at, "0 is outside %s%s", s.Bounds(), s.LeaveOut())
		}
	}
}

// work builds the job's function. A job without valid work gets noWork, so that its other faults
// are reported too.
func (c *checker) work(path string, e Handler) jobs.Func {
	switch {
	case e.HTTP != nil && e.Exec != nil:
		c.fault(path+".http", "exec is given too; a job does one thing: keep one of them")
	case e.HTTP == nil && e.Exec == nil && !c.faults.has(path+".exec") && !c.faults.has(path+".http"):
		c.fault(path, "does nothing; give it work: exec: {command: [sh, -c, \"echo hello\"]}, or http: {url: \"https://example.org/hook\"}")
	}
	work := jobs.Func(noWork)
	if e.HTTP != nil {
		call := httpjob.Options{Method: e.HTTP.Method, URL: e.HTTP.URL, Headers: e.HTTP.Headers, Body: e.HTTP.Body, Expect: e.HTTP.Expect, Result: e.HTTP.Result == "body"}
		f, err := httpjob.New(call)
		if c.workFaults(path+".http.", err); err == nil {
			work = f
		}
	}
	if e.Exec != nil {
		command := execjob.Command{Command: e.Exec.Command, Dir: e.Exec.Dir, Env: e.Exec.Env, Checkpoints: e.Exec.Checkpoints == "files", Result: e.Exec.Result == "file"}
		c.workFaults(path+".exec.", command.Validate())
		work = execjob.New(command)
	}
	return work
}

func (c *checker) workFaults(path string, err error) {
	for _, f := range FieldErrors(err) {
		c.fault(path+f.Field, "%s", f.Msg)
	}
}

// allHandlers turns the handlers into functions and judges each.
func (c *checker) allHandlers() {
	c.HandlerFuncs = make(map[string]jobs.Func, len(c.Handlers))
	for _, name := range slices.Sorted(maps.Keys(c.Handlers)) {
		path := "handlers." + name
		if c.faults.has(path) {
			continue
		}
		for _, f := range FieldErrors(probe(jobs.Job{Handler: name})) {
			if f.Field == "handler" {
				c.fault(path, "%s", f.Msg)
			}
		}
		c.HandlerFuncs[name] = c.work(path, c.Handlers[name])
	}
}

// results refuses a result for work that has none.
func (c *checker) results(path string, e jobEntry) {
	const words = "the tick of several shards has no result; leave it out, and store it elsewhere"
	if e.settings.Shards <= 1 {
		return
	}
	if e.work.Exec != nil && e.work.Exec.Result == "file" {
		c.fault(path+".exec.result", words)
	}
	if e.work.HTTP != nil && e.work.HTTP.Result == "body" {
		c.fault(path+".http.result", words)
	}
}
