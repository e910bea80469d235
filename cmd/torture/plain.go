//go:build unix

package main

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// plain is the control: no fault.
func plain(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, r.nodes)
	owners := s.owners(ctx)
	s.check(waitUntil(ctx, s.from.Add(r.seconds-time.Second)))
	s.finish(ctx)
	s.fair(count(owners))
}

// unfair is a node that ran too little.
const unfair judge.Kind = "SHARE"

// fair wants each node to have run its part: a tenth with three nodes, unless the hash gave it
// fewer jobs than that. Node ids are random, so with few jobs that happens.
func (s *stage) fair(owned map[string]int) {
	ran := map[string]int{}
	begun := starts(s.lines)
	for _, l := range begun {
		ran[l.node]++
	}
	least := 0.3 / float64(len(s.nodes))
	for _, n := range s.nodes {
		switch {
		case float64(ran[n.name]) >= least*float64(len(begun)):
		case float64(owned[n.name]) < least*float64(len(s.jobs)):
			s.note("the hash gave %s %d of %d jobs", n.name, owned[n.name], len(s.jobs))
		default:
			s.accuse(unfair, n.name, "it ran %d of %d ticks and goes first for %d of %d jobs", ran[n.name], len(begun), owned[n.name], len(s.jobs))
		}
	}
}
