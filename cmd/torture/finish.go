//go:build unix

package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// stop ends all nodes in order, between two ticks. Ticks that come due later need not run.
func (s *stage) stop(ctx context.Context) {
	const between = 700 * time.Millisecond // into the second
	now := time.Now()
	calm := now.Truncate(time.Second).Add(between)
	if calm.Before(now) {
		calm = calm.Add(time.Second)
	}
	s.check(waitUntil(ctx, calm))
	s.crashes()
	s.check(os.Remove(s.lives()))
	s.asked = time.Now()
	for _, n := range s.nodes {
		if n.alive() {
			s.check(n.signal(syscall.SIGTERM))
		}
	}
	limit := s.drain
	if s.hurried {
		limit = standstill
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, n := range s.nodes {
		switch err := n.gone(bound); {
		case ctx.Err() != nil:
			s.check(ctx.Err())
		case err != nil:
			s.accuse(wrongExit, n.name, "did not end within %s: %s", limit, n.lastWords())
			n.end()
		case n.err != nil && n.killed.IsZero():
			s.accuse(wrongExit, n.name, "%v, not 0: %s", n.err, n.lastWords())
		}
	}
	s.ended = time.Now()
	s.note("drained in %s", s.ended.Sub(s.asked).Round(time.Millisecond))
}

// crashes accuses the nodes that ended before the scenario stopped them.
func (s *stage) crashes() {
	for _, n := range s.nodes {
		if !n.alive() && n.killed.IsZero() && n.left.IsZero() {
			s.accuse(wrongExit, n.name, "ended by itself (%v): %s", n.err, n.lastWords())
		}
	}
}

// gather reads sink and books.
func (s *stage) gather(ctx context.Context, namespace string) {
	lines, bad, err := readSink(s.sink())
	s.check(err)
	s.lines, s.findings = lines, append(s.findings, bad...)
	s.books, err = readBooks(ctx, s.client, namespace)
	s.check(err)
}

// finish stops the nodes, gathers the evidence, and has it judged.
func (s *stage) finish(ctx context.Context) {
	s.stop(ctx)
	s.gather(ctx, namespace)
	c, err := s.evidence()
	s.check(err)
	s.report = judge.Check(c)
	s.findings = append(s.findings, s.report.Findings...)
	s.settled()
}
