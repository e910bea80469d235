//go:build unix

package main

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// startsWithin is how late a run may start when a node that lives can take it: promise P6.
	startsWithin = 2 * time.Second
	// failoverHold is the default of node.failover_hold.
	failoverHold = 3 * time.Second
	// standstill is longer than any step takes on a machine that still works.
	standstill = 3 * time.Minute
	// recovery is how long after a lease's time a fault may still show: nodes claim again after a
	// second and a half at the latest, and then work off the due ticks.
	recovery = 5 * time.Second
)

// settle is how long after a fault its effects may last.
func (s *stage) settle() time.Duration { return s.ttl + recovery }

// window is a span of time, both ends included; the zero window holds nothing.
type window struct{ from, to time.Time }

func (w window) holds(t time.Time) bool {
	return !w.from.IsZero() && !t.Before(w.from) && !t.After(w.to)
}

// evidence is everything that is judged: the jobs, sink and books, and the scenario's faults.
func (s *stage) evidence() (judge.Case, error) {
	c := judge.Case{
		Writes: writes(s.lines, s.books.abandoned()), Books: s.books, Disturbed: s.disturbed(),
		Read: s.asked, Ended: s.ended, Within: startsWithin, Settle: s.settle(),
		Crowded: s.hurried,
	}
	for _, n := range s.nodes {
		c.Nodes = append(c.Nodes, n.name)
	}
	for _, j := range s.jobs {
		v := judge.Version{Definition: j.definition(s.ttl), Certain: judge.Span{From: s.from}, Possible: judge.Span{From: s.begun}}
		var err error
		if v.Schedule, err = cron.ParseFor(j.name, j.schedule, ""); err != nil {
			return c, err
		}
		c.Jobs = append(c.Jobs, judge.Job{Name: j.name, StartsOnly: !j.lasts, Versions: []judge.Version{v}})
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

// writes returns the lines of the sink for the judge. Commands have no guard that compares tokens,
// so stale lines are marked here, but only of runs that were recorded as abandoned: any other
// falling token stays visible.
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

// definition returns the job's definition as nodes store it.
func (j job) definition(ttl time.Duration) jobs.Definition {
	return jobs.Job{Name: j.name, Schedule: j.schedule, TTL: ttl}.Definition()
}
