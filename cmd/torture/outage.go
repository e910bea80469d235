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
