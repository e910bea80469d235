//go:build unix

package main

import (
	"context"
	"fmt"
	"time"
)

// blind is a verifier that missed what was wrong.
const blind kind = "BLIND"

// broken takes the guard away and checks the checker. First each node runs in a namespace of its
// own, as if none asked the ledger: every tick runs once per node, and the verifier must name
// each. Then, in the lines of one of these nodes, which alone are good, one fault of each kind
// is planted.
func broken(ctx context.Context, r *rehearsal, s *stage) error {
	own := func(i int) []string { return []string{"--namespace", fmt.Sprintf("alone-%d", i+1)} }
	if err := s.startAll(ctx, r.nodes, own); err != nil {
		return err
	}
	seconds := min(r.seconds, 10*time.Second)
	if r.short {
		seconds = 5 * time.Second
	}
	if err := waitUntil(ctx, s.from.Add(seconds-time.Second)); err != nil {
		return err
	}
	stopped, err := s.stop(ctx)
	if err != nil {
		return err
	}
	lines, bad, err := readSink(s.sink())
	if err != nil {
		return err
	}
	s.lines = lines
	d := demand{jobs: s.jobs, must: window{s.from, stopped.Truncate(time.Second)}, stop: s.ended, within: startsWithin}
	exits := s.findings.violations
	s.findings = examine(lines, d)
	found := s.findings.violations
	s.findings.violations = append(exits, bad...)

	doubles := 0
	for _, v := range found {
		if v.kind == double {
			doubles++
		}
	}
	inWindow := 0
	for _, l := range lines {
		if d.must.holds(l.tick) {
			inWindow++
		}
	}
	if want := len(s.jobs) * (r.nodes - 1) * int(seconds/time.Second); doubles < want {
		s.accuse(blind, "%d nodes with no common lock ran %d ticks in %d lines, and the verifier found %d doubles, not the %d that must be there",
			r.nodes, s.findings.wanted, inWindow, doubles, want)
	}
	s.note("%d nodes with no common lock: the verifier said DOUBLE %d times in %d lines", r.nodes, doubles, len(lines))
	s.plant(only(lines, "n1"), d)
	return nil
}

// plant spoils good lines in every way that is known, and wants each to be named.
func (s *stage) plant(good []line, d demand) {
	for _, v := range examine(good, d).violations {
		s.accuse(blind, "the lines of n1 alone are good, and the verifier said: %s", v)
	}
	words := ""
	for _, m := range mutants {
		words += " " + string(m.want)
	}
	for _, m := range missed(good, d) {
		s.accuse(blind, "%s was planted, and the verifier did not say %s", m.what, m.want)
	}
	s.note("planted in the lines of one node, and named:%s", words)
}

// only are one node's lines.
func only(lines []line, node string) []line {
	var out []line
	for _, l := range lines {
		if l.node == node {
			out = append(out, l)
		}
	}
	return out
}
