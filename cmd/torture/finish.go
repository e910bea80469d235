//go:build unix

package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// stop ends all nodes in order, between two ticks. What comes due later need not run.
func (s *stage) stop(ctx context.Context) error {
	const between = 700 * time.Millisecond // into the second
	now := time.Now()
	calm := now.Truncate(time.Second).Add(between)
	if calm.Before(now) {
		calm = calm.Add(time.Second)
	}
	if err := waitUntil(ctx, calm); err != nil {
		return err
	}
	s.crashes()
	if err := os.Remove(s.lives()); err != nil {
		return err
	}
	s.asked = time.Now()
	for _, n := range s.nodes {
		if n.alive() {
			if err := n.signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	bound, cancel := context.WithTimeout(ctx, s.drain)
	defer cancel()
	for _, n := range s.nodes {
		switch err := n.gone(bound); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.accuse(wrongExit, n.name, "did not end within its drain time, %s: %s", s.drain, n.lastWords())
			n.end()
		case n.err != nil && n.killed.IsZero():
			s.accuse(wrongExit, n.name, "%v, not 0: %s", n.err, n.lastWords())
		}
	}
	s.ended = time.Now()
	s.note("drained in %s", s.ended.Sub(s.asked).Round(time.Millisecond))
	return nil
}

// crashes accuses the nodes that have ended before they were told to.
func (s *stage) crashes() {
	for _, n := range s.nodes {
		if !n.alive() && n.killed.IsZero() && n.left.IsZero() {
			s.accuse(wrongExit, n.name, "ended by itself (%v): %s", n.err, n.lastWords())
		}
	}
}

// gather reads sink and books.
func (s *stage) gather(ctx context.Context, namespace string) error {
	lines, bad, err := readSink(s.sink())
	if err != nil {
		return err
	}
	s.lines, s.findings = lines, append(s.findings, bad...)
	s.books, err = readBooks(ctx, s.client, namespace)
	return err
}

// finish stops the nodes, gathers what they left, and has it judged.
func (s *stage) finish(ctx context.Context) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	if err := s.gather(ctx, namespace); err != nil {
		return err
	}
	c, err := s.evidence()
	if err != nil {
		return err
	}
	s.report = judge.Check(c)
	s.findings = append(s.findings, s.report.Findings...)
	s.settled()
	return nil
}
