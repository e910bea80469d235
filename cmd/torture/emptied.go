//go:build unix

package main

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// aheadBy is how long before the other nodes one node meets the empty Redis.
	aheadBy = time.Second
	// flushes is how often Redis is emptied while it runs, and flushEvery how often in between.
	flushes, flushEvery = 20, 150 * time.Millisecond
)

// twice is a tick that ran twice though every node lived.
const twice judge.Kind = "TWICE"

// emptied restarts Redis without its data while all nodes but one stand still, and then empties it
// again and again.
func emptied(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	seconds := max(r.seconds, 24*time.Second)
	s.check(waitUntil(ctx, s.from.Add(seconds/4)))
	s.amid(ctx)
	struck := time.Now()
	for _, n := range s.nodes[1:] {
		s.freeze(n)
	}
	s.check(s.client.FlushAll(ctx).Err())
	s.check(s.redis.Stop())
	s.check(s.redis.Restart())
	s.say("Redis started at %s without its data", stamp(time.Now()))
	s.check(wait(ctx, aheadBy))
	for _, n := range s.nodes[1:] {
		s.thaw(n)
	}
	s.check(wait(ctx, 4*time.Second))
	for range flushes {
		s.check(s.client.FlushAll(ctx).Err())
		s.check(wait(ctx, flushEvery))
	}
	back := time.Now()
	s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: s.from, Until: back}, What: "emptied", Lossy: true, Loses: true})
	s.check(waitUntil(ctx, later(s.from.Add(seconds-time.Second), back.Add(s.settle()+4*time.Second))))
	s.finish(ctx)
	if n := s.forgotten(struck); n > 0 {
		s.accuse(twice, "Redis", "%d ticks ran twice", n)
	}
}
