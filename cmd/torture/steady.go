//go:build unix

package main

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// plain is the control: no fault.
func plain(ctx context.Context, r *rehearsal, s *stage) {
	steady(ctx, r, s, nil, func(context.Context) {})
}

// steady runs nodes undisturbed, each with flags of its own; look is called when all are ready.
func steady(ctx context.Context, r *rehearsal, s *stage, flags func(i int) []string, look func(context.Context)) {
	s.startAll(ctx, r.nodes, flags)
	owners := s.owners(ctx)
	look(ctx)
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

// skewOf are the flags of the two nodes with a wrong clock.
func skewOf(i int) []string {
	switch i {
	case 0:
		return []string{"--clock-offset", "5m"}
	case 1:
		return []string{"--clock-offset", "-5m"}
	}
	return nil
}

// shifted is a lag that changed with the nodes' clocks, or a clock that did not.
const shifted judge.Kind = "SKEW"

// skew is plain with two wrong clocks; the lag must stay what it was.
func skew(ctx context.Context, r *rehearsal, s *stage) {
	steady(ctx, r, s, skewOf, s.offsets)
	was, ok := r.median["plain"]
	if !ok {
		s.note("no plain run in this invocation to compare the lag with; use -scenario all")
		return
	}
	now := quantile(lags(starts(s.lines), nil), 0.5)
	s.note("p50 %s, plain %s", short(now), short(was))
	// Two runs on a busy machine differ; a node that fired by its own clock would be off by 300 s.
	if now > 2*was+25*time.Millisecond {
		s.accuse(shifted, "lag", "p50 of the lag is %s, plain had %s", now, was)
	}
}

// offsets waits until the roster shows that the clocks are as wrong as they should be: else the
// scenario would prove nothing.
func (s *stage) offsets(ctx context.Context) {
	s.eventually(ctx, readyWithin, "the roster does not show clocks 5 minutes off", func(ctx context.Context) (bool, error) {
		nodes, err := s.ops(s.client).Nodes(ctx)
		var ahead, behind int64
		for _, n := range nodes {
			ahead, behind = max(ahead, -n.ClockOffsetMS), max(behind, n.ClockOffsetMS)
		}
		return ahead > 299_000 && behind > 299_000, err
	})
}
