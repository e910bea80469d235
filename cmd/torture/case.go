//go:build unix

package main

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// startsWithin is how late a run may start when a node that lives can take it: promise P6.
	startsWithin = 2 * time.Second
	// recovery is how long after a lease's time a fault may still show: nodes ask again after a second and a half at the
	// latest, and then work off what is due.
	recovery = 5 * time.Second
)

// settle is how long after a fault its effects may last.
func (s *stage) settle() time.Duration { return s.ttl + recovery }

// window is a span of time, both ends included; the zero window holds nothing.
type window struct{ from, to time.Time }

func (w window) holds(t time.Time) bool {
	return !w.from.IsZero() && !t.Before(w.from) && !t.After(w.to)
}

// evidence is everything that is judged: what was deployed, sink and books, and what the scenario did.
func (s *stage) evidence() (judge.Case, error) {
	terms := s.terms
	if terms == nil {
		terms = []term{{jobs: s.jobs, switched: window{s.begun, s.from}}}
	}
	c := judge.Case{
		Writes: writes(s.lines, s.books.abandoned()), Books: s.books, Disturbed: s.disturbed(),
		Read: s.asked, Ended: s.ended, Within: startsWithin, Settle: s.settle(),
	}
	for _, n := range s.nodes {
		c.Nodes = append(c.Nodes, n.name)
	}
	for _, j := range s.jobs {
		versions, err := versionsOf(j.name, terms, s.ttl)
		if err != nil {
			return c, err
		}
		c.Jobs = append(c.Jobs, judge.Job{Name: j.name, StartsOnly: !j.lasts, Versions: versions})
	}
	return c, nil
}

// disturbed are the faults of the scenario and of its nodes, and the end.
func (s *stage) disturbed() []judge.Disturbance {
	all := append(s.faults[:len(s.faults):len(s.faults)], judge.Disturbance{Span: judge.Span{From: s.asked}, What: "drain at the end"})
	for _, n := range s.nodes {
		add := func(what string, span judge.Span) {
			if !span.From.IsZero() {
				all = append(all, judge.Disturbance{Span: span, What: what, Nodes: []string{n.name}})
			}
		}
		add("kill", judge.Span{From: n.killed, Until: n.killed})
		add("freeze", n.frozen)
		add("drain", judge.Span{From: n.left, Until: n.endedAt()})
	}
	return all
}

// writes are the lines of the sink for the judge. Commands have no guard that compares tokens: what one would have refused
// is marked here, of runs that were recorded as abandoned only, so that a token that falls is seen.
func writes(lines []line, abandoned map[string]bool) []judge.Write {
	top := map[string]int64{}
	var all []judge.Write
	for _, l := range lines {
		all = append(all, judge.Write{
			No: l.no, At: l.at, Job: l.job, Tick: l.tick, Run: l.run, Token: l.token, Node: l.node, Shards: 1,
			Phase: l.phase, Refused: l.token < top[l.job] && abandoned[l.run],
		})
		top[l.job] = max(top[l.job], l.token)
	}
	return all
}

// definition is what nodes store of the job.
func (j job) definition(ttl time.Duration, generation string) jobs.Definition {
	d := jobs.Job{Name: j.name, Schedule: j.schedule, TTL: ttl}.Definition()
	d.Generation = generation
	return d
}

// term is a configuration that nodes are deployed with, and its time.
type term struct {
	jobs       []job
	generation string
	switched   window // when its definitions may take the place of those before, or, of the first term, come to be
}

// of is a term's job of that name; the zero job when it has none.
func (t term) of(name string) job {
	for _, j := range t.jobs {
		if j.name == name {
			return j
		}
	}
	return job{}
}

// versionsOf are a job's definitions, one after another. While one takes the place of another, each tick of either may run;
// where both have the same schedule, each must.
func versionsOf(name string, terms []term, ttl time.Duration) ([]judge.Version, error) {
	var all []judge.Version
	for _, t := range terms {
		d := t.of(name).definition(ttl, t.generation)
		v := judge.Version{Definition: d, Certain: judge.Span{From: t.switched.to}, Possible: judge.Span{From: t.switched.from}}
		if n := len(all); n > 0 {
			last := &all[n-1]
			if last.Definition.Digest() == d.Digest() {
				continue
			}
			last.Certain.Until, last.Possible.Until = t.switched.from, t.switched.to
			if last.Definition.Schedule == d.Schedule {
				v.Schedule, v.Certain.From = last.Schedule, t.switched.from
			}
		}
		if v.Schedule == nil {
			var err error
			if v.Schedule, err = jobs.ParseScheduleFor(name, d.Schedule, d.TimeZone); err != nil {
				return nil, err
			}
		}
		all = append(all, v)
	}
	return all, nil
}
