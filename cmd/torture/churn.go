//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// churnJobs is how many jobs tick each second while nodes come and go.
const churnJobs = 200

func churnSettings(r *rehearsal) settings {
	s := usual(r)
	s.jobs = everySecond(churnJobs)
	s.posts = true
	return s
}

// step is one change of the set of nodes.
type step struct {
	at time.Duration // in seconds of the window
	do string
}

// churnSteps are the changes in their order, and the time they take: a join, a leave, a kill and a
// freeze, and joins and leaves all along the freeze.
func churnSteps(r *rehearsal) (steps []step, all time.Duration) {
	if r.short {
		for i, do := range []string{"join", "leave", "freeze", "kill", "join", "leave", "thaw"} {
			steps = append(steps, step{time.Duration(2+3*i/2) * time.Second, do})
		}
		return steps, 15 * time.Second
	}
	const second = time.Second
	steps = []step{{4 * second, "join"}, {8 * second, "leave"}, {12 * second, "freeze"}, {16 * second, "kill"}, {18 * second, "join"}}
	for at := 22 * second; at < 56*second; at += 6 * second {
		steps = append(steps, step{at, "join"}, step{at + 3*second, "leave"})
	}
	return append(steps, step{57 * second, "thaw"}, step{60 * second, "kill"}), 66 * second
}

// churn runs many jobs while nodes come and go in every way.
func churn(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, 4)
	steps, all := churnSteps(r)
	var frozen *node
	for _, x := range steps {
		s.check(waitUntil(ctx, s.from.Add(x.at)))
		frozen = s.step(x.do, frozen)
	}
	s.check(waitUntil(ctx, s.from.Add(all)))
	s.reaped(ctx, func(n *node) bool { return !n.killed.IsZero() })
	s.finish(ctx)
	s.note("%d nodes in all, %d changes", len(s.nodes), len(steps))
}

// step makes one change, and returns the node that is frozen then.
func (s *stage) step(do string, frozen *node) *node {
	switch do {
	case "join":
		s.say("%s joins", s.start(fmt.Sprint("n", len(s.nodes)+1)).name)
	case "leave":
		n := s.oldest(frozen)
		s.say("SIGTERM to %s", n.name)
		s.leave(n)
	case "kill":
		s.kill(s.oldest(frozen))
	case "freeze":
		frozen = s.oldest(nil)
		s.freeze(frozen)
	case "thaw":
		s.thaw(frozen)
		frozen = nil
	}
	return frozen
}

// errNobody is why nothing can be done to a node.
var errNobody = errors.New("no node is alive")

// oldest returns the node to leave, freeze or kill: the living node that started first.
func (s *stage) oldest(frozen *node) *node {
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.alive() && n != frozen && n.left.IsZero() })
	if i < 0 {
		s.check(errNobody)
	}
	return s.nodes[i]
}
