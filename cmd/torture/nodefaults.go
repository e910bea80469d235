//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// plain is the control: no fault.
func plain(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	s.check(waitUntil(ctx, s.from.Add(r.seconds-time.Second)))
	s.finish(ctx)
}

// before is how long ahead of a full second the first victim is killed: it has claimed nothing
// of that second, and can no more.
const before = 30 * time.Millisecond

// kill ends two nodes with SIGKILL: one just before a tick, and, when a fresh node has taken its
// place, one amid its starts.
func kill(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	seconds := max(r.seconds, 15*time.Second)
	s.check(waitUntil(ctx, s.from.Add(3*seconds/10)))
	tick := time.Unix(time.Now().Unix()+2, 0)
	s.check(waitUntil(ctx, tick.Add(-before)))
	s.kill(s.oldest(nil))
	s.check(waitUntil(ctx, tick.Add(seconds/5)))
	s.ready(ctx, []*node{s.start(fmt.Sprint("n", nodes+1))})
	s.amid(ctx)
	s.kill(s.oldest(nil))
	s.check(waitUntil(ctx, s.from.Add(seconds-time.Second)))
	s.reaped(ctx, (*node).struck)
	s.finish(ctx)
}

// unaware is a resumed node that did not notice the end of its run's lease, or did not log it.
const unaware judge.Kind = "RESUME"

// freezing are the times of the scenario.
func freezing(r *rehearsal) (ttl, freeze, long time.Duration) {
	if r.short {
		return 3 * time.Second, 8 * time.Second, 12 * time.Second
	}
	return 5 * time.Second, 20 * time.Second, 25 * time.Second
}

func freezeSettings(r *rehearsal) settings {
	ttl, _, lasting := freezing(r)
	first := time.Now().Add(4 * time.Second)
	return settings{jobs: append(everySecond(ticking), slow("slow-1"), slow("slow-2"), long(first, lasting)), ttl: ttl}
}

// freeze stops the node that carries the long run, amid its other starts, for longer than the
// leases last, and lets it go on while the long command still runs.
func freeze(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	long := s.await(ctx, "long")
	n := s.node(long.node)
	s.amid(ctx)
	_, d, _ := freezing(r)
	s.freeze(n)
	s.check(wait(ctx, d))
	s.thaw(n)
	s.check(waitUntil(ctx, later(s.from.Add(r.seconds-time.Second), n.frozen.Until.Add(4*time.Second))))
	s.finish(ctx)
	s.resumed(n, long.run)
	s.joinsAgain(n)
}

// await is the first start of a job; its ticks are 30 s apart.
func (s *stage) await(ctx context.Context, job string) (first line) {
	s.eventually(ctx, 40*time.Second, "job "+job+" does not start", func(context.Context) (bool, error) {
		lines, _, err := readSink(s.sink())
		i := slices.IndexFunc(lines, func(l line) bool { return l.job == job })
		if i >= 0 {
			first = lines[i]
		}
		return i >= 0, err
	})
	return first
}

// resumed checks when the frozen node noticed the loss of its long run, and how the run is
// recorded.
func (s *stage) resumed(n *node, run string) {
	told := n.said(func(r record) bool {
		return r.Run == run && r.Message == "lease lost while the run was going; its context was cancelled"
	})
	switch after := told.Time.Sub(n.frozen.Until); {
	case told.Run == "":
		s.accuse(unaware, n.name, "it never logged that the lease of its long run, %s, was lost", run)
	case after < -time.Millisecond || after > time.Second && !s.hurried: // the log has whole milliseconds
		s.accuse(unaware, n.name, "it logged the lost lease of %s %s after SIGCONT, not within 1 s", run, after)
	default:
		s.note("%s logged the lost lease, and its context was cancelled, %s after SIGCONT", n.name, short(after))
	}
	if n.said(func(r record) bool { return r.Run == run && r.Answer == "lost" }).Run == "" {
		s.accuse(unaware, n.name, "it never logged that its settle of %s was answered lost", run)
	}
	row := s.books.find(run)
	if row.Outcome != jobs.OutcomeAbandoned || row.Late == "" {
		s.accuse(unaware, n.name, "the record of %s should be abandoned, and have the late report: %+v", run, row)
	} else {
		s.note("its settle was answered lost; the record: abandoned %s after the freeze, and later reported: %s",
			short(time.UnixMilli(row.At).Sub(n.frozen.From)), row.Late)
	}
	s.stepped(run, time.UnixMilli(row.At))
	if slices.ContainsFunc(s.lines, func(l line) bool { return l.run == run && l.phase == judge.End }) {
		s.accuse(unaware, n.name, "the long command of %s reached its end although its context was cancelled before that", run)
	}
}

// stepped checks that the long command took its last step before its run was recorded as abandoned,
// from when on another one may begin.
func (s *stage) stepped(run string, abandoned time.Time) {
	last, err := os.Stat(s.lives() + "." + run)
	switch {
	case err != nil:
		s.accuse(unaware, run, "its steps: %v", err)
	case !last.ModTime().Before(abandoned):
		s.accuse(unaware, run, "a step of its command %s after the run was abandoned", short(last.ModTime().Sub(abandoned)))
	default:
		s.note("the last step of its command was %s before the run was abandoned", short(abandoned.Sub(last.ModTime())))
	}
}

// joinsAgain checks that the frozen node runs ticks again.
func (s *stage) joinsAgain(n *node) {
	next := time.Hour
	for _, l := range starts(s.lines) {
		if l.node == n.name && l.tick.After(n.frozen.Until) {
			next = min(next, l.at.Sub(n.frozen.Until))
		}
	}
	if next > time.Minute {
		s.accuse(unaware, n.name, "it ran nothing after it was resumed")
	}
	s.note("%s, frozen for %s with %d runs, all recorded as abandoned, ran its next one %s after SIGCONT",
		n.name, short(n.frozen.Until.Sub(n.frozen.From)), len(s.books.abandoned()), short(next))
}

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
