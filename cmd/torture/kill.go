//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
)

// before is how long ahead of a full second the first victim is killed: it has claimed nothing
// of that second, and can no more.
const before = 30 * time.Millisecond

// kill ends two nodes with SIGKILL: one just before a tick, and, when a fresh node has taken its
// place, one amid its starts.
func kill(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, r.nodes, nil)
	seconds := max(r.seconds, 15*time.Second)
	s.check(waitUntil(ctx, s.from.Add(3*seconds/10)))
	tick := time.Unix(time.Now().Unix()+2, 0)
	one := s.killBusiest(ctx, func() { s.check(waitUntil(ctx, tick.Add(-before))) })
	s.check(waitUntil(ctx, tick.Add(seconds/5)))
	s.ready(ctx, []*node{s.start(fmt.Sprint("n", r.nodes+1))})
	two := s.killBusiest(ctx, func() { s.amid(ctx) })
	s.check(waitUntil(ctx, s.from.Add(seconds-time.Second)))
	s.reaped(ctx, (*node).struck)
	s.finish(ctx)
	s.takeover(one)
	s.takeover(two)
}

// victim is a node, and the jobs for which it went first.
type victim struct {
	*node
	jobs map[string]bool
}

// killBusiest chooses the living node that goes first for the most jobs, and kills it when the wait is over.
func (s *stage) killBusiest(ctx context.Context, wait func()) victim {
	v := s.first(s.owners(ctx))
	wait()
	s.kill(v.node)
	return v
}

// first is the living node that is the owner of the most jobs.
func (s *stage) first(owners map[string]string) victim {
	v := victim{jobs: map[string]bool{}}
	n := count(owners)
	for _, node := range s.nodes {
		if node.alive() && (v.node == nil || n[node.name] > n[v.name]) {
			v.node = node
		}
	}
	if v.node == nil {
		s.check(errNobody)
	}
	for job, owner := range owners {
		if owner == v.name {
			v.jobs[job] = true
		}
	}
	return v
}

// takeover notes what became of the ticks for which the victim would have gone first. While it
// stands in the roster, the sweep of the others takes them, late by the grace.
func (s *stage) takeover(v victim) {
	const roster = 6 * time.Second
	late := lags(starts(s.lines), func(l line) bool {
		return v.jobs[l.job] && l.node != v.name && !l.tick.Before(v.killed.Truncate(time.Second)) && l.tick.Before(v.killed.Add(roster))
	})
	abandoned := 0
	for row := range s.books.runs {
		if row.Outcome == jobs.OutcomeAbandoned && row.NodeName == v.name {
			abandoned++
		}
	}
	s.note("%s, first for %d jobs, killed at %s: in the %s after that %d ticks of these started elsewhere, the latest %s after it was due; %d of its runs abandoned",
		v.name, len(v.jobs), stamp(v.killed), short(roster), len(late), short(quantile(late, 1)), abandoned)
}
