//go:build unix

package main

import (
	"context"
	"time"
)

// recovery is how long after Redis is back ticks may still be recorded as missed or skipped, and
// run later than usual: nodes ask again at the latest after a second and a half, then work off
// what is due.
const recovery = 5 * time.Second

// outage stops Redis amid a burst and starts it again with its data.
func outage(ctx context.Context, r *rehearsal, s *stage) error {
	if err := s.startAll(ctx, r.nodes, nil); err != nil {
		return err
	}
	lasts, seconds := 10*time.Second, r.seconds
	if r.short {
		lasts, seconds = 4*time.Second, max(seconds, 14*time.Second)
	}
	if err := waitUntil(ctx, s.from.Add(seconds/4)); err != nil {
		return err
	}
	if err := s.amid(ctx); err != nil {
		return err
	}
	down := time.Now()
	if err := s.redis.Stop(); err != nil {
		return err
	}
	s.say("Redis stopped at %s", stamp(down))
	if err := waitUntil(ctx, down.Add(lasts)); err != nil {
		return err
	}
	if err := s.redis.Restart(); err != nil {
		return err
	}
	up := time.Now()
	s.say("Redis started at %s with its data", stamp(up))
	end := s.from.Add(seconds - time.Second)
	if least := up.Add(recovery + time.Second); end.Before(least) {
		end = least
	}
	if err := waitUntil(ctx, end); err != nil {
		return err
	}
	gap := window{down.Add(-time.Second), up.Add(recovery)}
	if err := s.finish(ctx, demand{within: startsWithin, gap: gap}); err != nil {
		return err
	}
	s.outlived(window{down, up})
	return nil
}

// outlived notes what became of the ticks of the outage.
func (s *stage) outlived(out window) {
	var ran int
	var longest time.Duration
	again := out.to.Add(time.Hour)
	for _, l := range starts(s.lines) {
		if l.at.After(out.to) && l.at.Before(again) {
			again = l.at
		}
		if out.holds(l.tick) {
			ran, longest = ran+1, max(longest, l.lag())
		}
	}
	how := map[string]int{}
	for id, reason := range s.audit.absent {
		if out.holds(time.Unix(id.second, 0)) {
			how[reason]++
		}
	}
	s.note("Redis was away for %s; of the ticks of that time %d ran late (the latest by %s), %d are recorded as missed, %d as skipped behind a late run",
		short(out.to.Sub(out.from)), ran, short(longest), how["missed"], how["skipped"])
	s.note("first run %s after Redis was back; no node ended", short(again.Sub(out.to)))
}
