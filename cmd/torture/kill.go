//go:build unix

package main

import (
	"context"
	"fmt"
	"time"
)

// before is how long ahead of a full second the first victim is killed: it has claimed nothing
// of that second, and can no more.
const before = 30 * time.Millisecond

// kill ends two nodes with SIGKILL: one just before a tick, and, when a fresh node has taken its
// place, one amid its starts.
func kill(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, r.nodes)
	seconds := max(r.seconds, 15*time.Second)
	s.check(waitUntil(ctx, s.from.Add(3*seconds/10)))
	tick := time.Unix(time.Now().Unix()+2, 0)
	victim := s.busiest(s.owners(ctx))
	s.check(waitUntil(ctx, tick.Add(-before)))
	s.kill(victim)
	s.check(waitUntil(ctx, tick.Add(seconds/5)))
	s.ready(ctx, []*node{s.start(fmt.Sprint("n", r.nodes+1))})
	victim = s.busiest(s.owners(ctx))
	s.amid(ctx)
	s.kill(victim)
	s.check(waitUntil(ctx, s.from.Add(seconds-time.Second)))
	s.reaped(ctx, (*node).struck)
	s.finish(ctx)
}

// busiest is the living node that goes first for the most jobs.
func (s *stage) busiest(owners map[string]string) (most *node) {
	n := count(owners)
	for _, node := range s.nodes {
		if node.alive() && (most == nil || n[node.name] > n[most.name]) {
			most = node
		}
	}
	if most == nil {
		s.check(errNobody)
	}
	return most
}
