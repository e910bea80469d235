//go:build unix

package main

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"
)

// stop ends all nodes in order, between two ticks, and returns when they were told to. What comes due later need not run.
func (s *stage) stop(ctx context.Context) (time.Time, error) {
	const between = 700 * time.Millisecond // into the second
	now := time.Now()
	calm := now.Truncate(time.Second).Add(between)
	if calm.Before(now) {
		calm = calm.Add(time.Second)
	}
	if err := waitUntil(ctx, calm); err != nil {
		return time.Time{}, err
	}
	s.crashes()
	if err := os.Remove(s.lives()); err != nil {
		return time.Time{}, err
	}
	asked := time.Now()
	s.asked = asked
	for _, n := range s.nodes {
		if n.alive() {
			if err := n.signal(syscall.SIGTERM); err != nil {
				return asked, err
			}
		}
	}
	bound, cancel := context.WithTimeout(ctx, s.drain)
	defer cancel()
	for _, n := range s.nodes {
		select {
		case <-n.exited:
		case <-bound.Done():
			if ctx.Err() != nil {
				return asked, ctx.Err()
			}
			s.accuse(wrongExit, "node %s did not end within its drain time, %s: %s", n.name, s.drain, n.lastWords())
			n.end()
			continue
		}
		if n.err != nil && !s.dead[n.name] {
			s.accuse(wrongExit, "node %s: %v, not 0: %s", n.name, n.err, n.lastWords())
		}
	}
	s.ended = time.Now()
	s.note("drained in %s", s.ended.Sub(asked).Round(time.Millisecond))
	return asked, nil
}

// crashes accuses the nodes that have ended before they were told to.
func (s *stage) crashes() {
	for _, n := range s.nodes {
		if !n.alive() && !s.dead[n.name] && !s.left[n.name] {
			s.accuse(wrongExit, "node %s ended by itself (%v): %s", n.name, n.err, n.lastWords())
		}
	}
}

// finish stops the nodes and checks sink and books. d says what the scenario adds to the demand.
func (s *stage) finish(ctx context.Context, d demand) error {
	stopped, err := s.stop(ctx)
	if err != nil {
		return err
	}
	if err := s.gather(ctx); err != nil {
		return err
	}
	s.judge(d, stopped)
	return nil
}

// gather reads sink and books.
func (s *stage) gather(ctx context.Context) error {
	lines, bad, err := readSink(s.sink())
	if err != nil {
		return err
	}
	s.lines, s.findings.violations = lines, append(s.findings.violations, bad...)
	s.books, err = readBooks(ctx, s.client)
	return err
}

// judge checks what was gathered.
func (s *stage) judge(d demand, stopped time.Time) {
	found := s.books.judge(s.jobs, rules{struck: s.struck, gap: d.gap, lossy: d.lossy, switched: d.switched, stop: stopped})
	s.audit = found
	d.jobs, d.must, d.stop = s.jobs, window{s.from, stopped.Truncate(time.Second)}, s.ended
	d.absent, d.abandoned = found.absent, found.abandoned
	before := s.findings.violations
	s.findings = examine(s.lines, d)
	against := s.books.compare(s.jobs, s.lines, d.lossy)
	s.audit.unrecorded = against.unrecorded
	s.findings.violations = slices.Concat(before, s.findings.violations, found.violations, against.violations)
}
