//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// blind is a judge that missed a violation.
const blind judge.Kind = "BLIND"

func brokenSettings(r *rehearsal) settings {
	s := usual(r)
	s.jobs = append(s.jobs, slow("slow-1"))
	return s
}

// broken takes the guard away and checks the judge. Each node runs in a namespace of its own, as if
// none used a ledger: every tick runs once per node, and the judge must name each. The records of
// each such node are consistent by themselves.
func broken(ctx context.Context, r *rehearsal, s *stage) {
	for i := range nodes {
		s.start(fmt.Sprint("n", i+1), "--namespace", fmt.Sprint("alone-", i+1))
	}
	s.ready(ctx, s.nodes)
	seconds := min(r.seconds, 10*time.Second)
	if r.short {
		seconds = 6 * time.Second
	}
	s.check(waitUntil(ctx, s.from.Add(seconds-time.Second)))
	s.stop(ctx)
	s.gather(ctx, "alone-1")
	c, err := s.evidence()
	s.check(err)
	s.report = judge.Check(c)
	doubles := 0
	for _, f := range s.report.Findings {
		if f.Kind == judge.KindDouble {
			doubles++
		}
	}
	if want := ticking * (nodes - 1) * int(seconds/time.Second); doubles < want {
		s.accuse(blind, "judge", "%d nodes with no common lock ran %d ticks in %d lines, and %d doubles were found, not the %d that must be there",
			nodes, s.report.Ticks, len(s.lines), doubles, want)
	}
	s.note("%d nodes with no common lock: the judge said DOUBLE %d times of %d lines", nodes, doubles, len(s.lines))
	c.Writes = slices.DeleteFunc(c.Writes, func(w judge.Write) bool { return w.Node != "n1" })
	for _, f := range judge.Check(c).Findings {
		s.accuse(blind, "judge", "what n1 left is good by itself, and it said: %s", f)
	}
}
