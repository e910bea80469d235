//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

const (
	// Ticks due so long before and after a fault of the master may have lost their records.
	lossBefore = 2 * time.Second
	lossAfter  = 10 * time.Second
	// lag is how far behind the replicas are at least when the master is killed.
	lag = 700 * time.Millisecond
	// undead is for how long a frozen master has a successor when it is continued.
	undead = 1500 * time.Millisecond
	// noSooner is a time within which no replica is promoted: the sentinels wait as long before they suspect anything.
	noSooner = time.Second
)

func failoverSettings(r *rehearsal) settings {
	s := churnSettings(r)
	s.sentinel = true
	return s
}

// failover kills the master amid a burst, when its replicas have not heard of it for a moment. What it had acknowledged
// and not passed on is lost.
func failover(ctx context.Context, r *rehearsal, s *stage) error {
	return s.overthrow(ctx, r, "SIGKILL", func(old *redistest.Server) error {
		if err := s.watch.Part(ctx); err != nil {
			return err
		}
		if err := wait(ctx, lag); err != nil {
			return err
		}
		if err := s.amid(ctx); err != nil {
			return err
		}
		return old.Kill()
	}, nil)
}

// zombie stops the master amid a burst and continues it when another one has taken its place. It still holds itself for
// the master then, and answers what was sent to it, until a sentinel tells it otherwise.
func zombie(ctx context.Context, r *rehearsal, s *stage) error {
	return s.overthrow(ctx, r, "SIGSTOP", (*redistest.Server).Pause, func(ctx context.Context, old *redistest.Server) error {
		if err := wait(ctx, undead); err != nil {
			return err
		}
		if err := old.Resume(); err != nil {
			return err
		}
		back := time.Now()
		s.say("SIGCONT to the old master at %s", stamp(back))
		err := s.watch.Demoted(ctx, old)
		s.note("the old master went on %s after its successor was there, and was a replica another %s later", short(undead), short(time.Since(back)))
		return err
	})
}

// overthrow does something to the master, and then something else when a replica has taken its place.
func (s *stage) overthrow(ctx context.Context, r *rehearsal, what string, strike func(*redistest.Server) error,
	then func(context.Context, *redistest.Server) error,
) error {
	if err := s.startAll(ctx, r.nodes, nil); err != nil {
		return err
	}
	seconds := max(r.seconds, 24*time.Second)
	if err := waitUntil(ctx, s.from.Add(seconds/4)); err != nil {
		return err
	}
	old, err := s.watch.Master()
	if err != nil {
		return err
	}
	if err := s.amid(ctx); err != nil {
		return err
	}
	if err := strike(old); err != nil {
		return err
	}
	fault := time.Now()
	s.say("%s to the master at %s", what, stamp(fault))
	if _, err := s.watch.Promoted(ctx, old); err != nil {
		return err
	}
	s.note("%s to the master; the sentinels named another one %s later", what, short(time.Since(fault)))
	if then != nil {
		if err := then(ctx, old); err != nil {
			return err
		}
	}
	end := s.from.Add(seconds - time.Second)
	if least := fault.Add(lossAfter + 4*time.Second); end.Before(least) {
		end = least
	}
	if err := waitUntil(ctx, end); err != nil {
		return err
	}
	loss := window{fault.Add(-lossBefore), fault.Add(lossAfter)}
	if err := s.finish(ctx, demand{within: startsWithin, gap: loss, lossy: loss}); err != nil {
		return err
	}
	s.forgotten(fault)
	return nil
}

// forgotten notes what became of the ticks around a fault.
func (s *stage) forgotten(fault time.Time) {
	first := fault.Add(time.Hour)
	for _, l := range starts(s.lines) {
		if l.at.After(fault.Add(noSooner)) && l.at.Before(first) {
			first = l.at
		}
	}
	s.note("first run %s after the fault; no node ended", short(first.Sub(fault)))
	s.note("between %s before the fault and %s after it: %d ticks ran twice, %d runs have no record, %d ticks neither ran nor are recorded",
		short(lossBefore), short(lossAfter), len(s.findings.twice), len(s.audit.unrecorded), len(s.findings.vanished))
	for i, p := range s.findings.twice {
		if i == shown {
			s.note("... and %d more", len(s.findings.twice)-shown)
			break
		}
		s.note("%s ran twice: due %s, started %s and %s after the fault", p.first.job,
			signed(p.first.tick.Sub(fault)), signed(p.first.at.Sub(fault)), signed(p.second.at.Sub(fault)))
	}
}

func signed(d time.Duration) string { return fmt.Sprintf("%+.3f s", d.Seconds()) }
