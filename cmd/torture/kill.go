//go:build unix

package main

import (
	"context"
	"fmt"
	"time"
)

// plain is the control: no fault.
func plain(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	s.check(waitUntil(ctx, s.from.Add(r.seconds-time.Second)))
	s.finish(ctx)
}

// before is how long ahead of a full second the first victim is killed: it has claimed nothing
// of that second, and can no more.
const before = 30 * time.Millisecond

// kill ends two nodes with SIGKILL: one just before a tick, and, when a fresh node has taken its
// place, one amid its starts.
func kill(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	seconds := max(r.seconds, 15*time.Second)
	s.check(waitUntil(ctx, s.from.Add(3*seconds/10)))
	tick := time.Unix(time.Now().Unix()+2, 0)
	s.check(waitUntil(ctx, tick.Add(-before)))
	s.kill(s.oldest(nil))
	s.check(waitUntil(ctx, tick.Add(seconds/5)))
	s.ready(ctx, []*node{s.start(fmt.Sprint("n", nodes+1))})
	s.amid(ctx)
	s.kill(s.oldest(nil))
	s.check(waitUntil(ctx, s.from.Add(seconds-time.Second)))
	s.reaped(ctx, (*node).struck)
	s.finish(ctx)
}
