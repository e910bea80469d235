//go:build unix

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// before is how long ahead of a full second the first victim is killed: it has claimed nothing
// of that second, and can no more.
const before = 30 * time.Millisecond

// kill ends two nodes with SIGKILL: one just before a tick, and, when a fresh node has taken its
// place, one amid its starts.
func kill(ctx context.Context, r *rehearsal, s *stage) error {
	if err := s.startAll(ctx, r.nodes, nil); err != nil {
		return err
	}
	seconds := max(r.seconds, 15*time.Second)
	if err := waitUntil(ctx, s.from.Add(3*seconds/10)); err != nil {
		return err
	}
	one, err := s.busiest(ctx)
	if err != nil {
		return err
	}
	one.at = time.Unix(time.Now().Unix()+2, 0)
	if err := waitUntil(ctx, one.at.Add(-before)); err != nil {
		return err
	}
	if err := s.kill(one.node); err != nil {
		return err
	}
	if err := waitUntil(ctx, one.at.Add(seconds/5)); err != nil {
		return err
	}
	fresh, err := s.start(fmt.Sprintf("n%d", r.nodes+1))
	if err != nil {
		return err
	}
	if err := fresh.ready(ctx); err != nil {
		return err
	}
	two, err := s.busiest(ctx)
	if err != nil {
		return err
	}
	if err := s.amid(ctx); err != nil {
		return err
	}
	two.at = time.Now()
	if err := s.kill(two.node); err != nil {
		return err
	}
	if err := waitUntil(ctx, s.from.Add(seconds-time.Second)); err != nil {
		return err
	}
	if err := s.reaped(ctx); err != nil {
		return err
	}
	if err := s.finish(ctx, demand{within: startsWithin}); err != nil {
		return err
	}
	s.takeover(one)
	s.takeover(two)
	return nil
}

// victim is a node, the jobs for which it went first, and from when on it did not: the instant
// of the kill, or the tick just after it.
type victim struct {
	*node
	jobs map[string]bool
	at   time.Time
}

// busiest is the living node that goes first for the most jobs.
func (s *stage) busiest(ctx context.Context) (victim, error) {
	owners, err := s.owners(ctx)
	if err != nil {
		return victim{}, err
	}
	return s.first(owners)
}

// first is the living node that is the owner of the most jobs.
func (s *stage) first(owners map[string]string) (victim, error) {
	v := victim{jobs: map[string]bool{}}
	n := count(owners)
	for _, node := range s.nodes {
		if node.alive() && (v.node == nil || n[node.name] > n[v.name]) {
			v.node = node
		}
	}
	if v.node == nil {
		return v, errNobody
	}
	for job, owner := range owners {
		if owner == v.name {
			v.jobs[job] = true
		}
	}
	return v, nil
}

func (s *stage) kill(n *node) error {
	s.struck[n.name], s.dead[n.name] = true, true
	if err := n.signal(syscall.SIGKILL); err != nil {
		return err
	}
	s.say("SIGKILL to %s at %s", n.name, stamp(time.Now()))
	<-n.exited
	return nil
}

// takeover notes what became of the ticks for which the victim would have gone first. While it
// stands in the roster, the sweep of the others takes them, late by the grace.
func (s *stage) takeover(v victim) {
	const roster = 6 * time.Second
	var started, abandoned int
	var longest time.Duration
	for _, l := range starts(s.lines) {
		if v.jobs[l.job] && l.node != v.name && !l.tick.Before(v.at.Truncate(time.Second)) && l.tick.Before(v.at.Add(roster)) {
			started, longest = started+1, max(longest, l.lag())
		}
	}
	for _, rows := range s.books.Rows {
		for _, row := range rows {
			if s.audit.abandoned[row.Run] && row.NodeName == v.name {
				abandoned++
			}
		}
	}
	s.note("%s, first for %d jobs, killed at %s: in the %s after that %d ticks of these started elsewhere, the latest %s after it was due; %d of its runs abandoned",
		v.name, len(v.jobs), stamp(v.at), short(roster), started, short(longest), abandoned)
}
