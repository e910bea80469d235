//go:build unix

package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

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
