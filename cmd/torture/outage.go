//go:build unix

package main

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// outage stops Redis amid a burst and starts it again with its data.
func outage(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	lasts, seconds := 10*time.Second, r.seconds
	if r.short {
		lasts, seconds = 4*time.Second, max(seconds, 14*time.Second)
	}
	s.check(waitUntil(ctx, s.from.Add(seconds/4)))
	s.amid(ctx)
	out := window{from: time.Now()}
	s.check(s.redis.Stop())
	s.say("Redis stopped at %s", stamp(out.from))
	s.check(waitUntil(ctx, out.from.Add(lasts)))
	s.check(s.redis.Restart())
	out.to = time.Now()
	s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: out.from, Until: out.to}, What: "outage"})
	s.say("Redis started at %s with its data", stamp(out.to))
	s.check(waitUntil(ctx, later(s.from.Add(seconds-time.Second), out.to.Add(recovery+time.Second))))
	s.finish(ctx)
	s.note("Redis was away for %s; first run %s after it was back", short(out.to.Sub(out.from)), short(s.firstAfter(out.to)))
}

// later is the later of two instants.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstAfter returns how long after an instant the first later run wrote its first line.
func (s *stage) firstAfter(at time.Time) time.Duration {
	first := time.Hour
	for _, l := range starts(s.lines) {
		if d := l.at.Sub(at); d > 0 {
			first = min(first, d)
		}
	}
	return first
}

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
