//go:build unix

package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// namespace of every scenario but broken.
const namespace = "escapement"

// books are the ledger's records, by job.
type books map[string]judge.JobSnapshot

func readBooks(ctx context.Context, client redis.UniversalClient, namespace string) (books, error) {
	return judge.ReadBooks(ctx, client, namespace)
}

// runs yields the row of each run that has ended.
func (b books) runs(yield func(judge.Row) bool) {
	for _, j := range b {
		for _, row := range j.Rows {
			if !row.Ranged && !row.IsTick && !yield(row) {
				return
			}
		}
	}
}

// open are the runs in flight, pending ones, and sharded ticks that are not closed.
func (b books) open() (all []judge.Run) {
	for _, j := range b {
		all = append(all, j.Open...)
	}
	return all
}

// find is the row of one run.
func (b books) find(run string) (found judge.Row) {
	for row := range b.runs {
		if row.Run == run {
			found = row
		}
	}
	return found
}

// abandoned returns the ids of runs recorded as abandoned: a guard must refuse their later writes.
func (b books) abandoned() map[string]bool {
	all := map[string]bool{}
	for row := range b.runs {
		if row.Outcome == jobs.OutcomeAbandoned {
			all[row.Run] = true
		}
	}
	return all
}

// started returns when each run started, by its id; for a run in flight, when it was granted.
func (b books) started() map[string]time.Time {
	at := map[string]time.Time{}
	for row := range b.runs {
		at[row.Run] = time.UnixMilli(row.Started)
	}
	for _, l := range b.open() {
		if !l.IsOpenTick && !l.Pending() {
			at[l.ID] = time.UnixMilli(l.Granted)
		}
	}
	return at
}

// unsettled is a run, or a sharded tick, without a recorded end.
const unsettled judge.Kind = "OPEN"

// settled checks that nodes which ended in peace left nothing open: they settle or hand back their
// runs. A node that was killed or frozen may have left a run, and a Redis that has lost writes may
// have lost its end.
func (s *stage) settled() {
	open := s.books.open()
	for _, l := range open {
		granted := time.UnixMilli(l.Granted)
		excused := slices.ContainsFunc(s.nodes, func(n *node) bool { return n.name == l.NodeName && n.struck() }) ||
			slices.ContainsFunc(s.faults, func(d judge.Disturbance) bool {
				return d.Loses && d.From.Before(granted) && d.Until.Add(s.settle()).After(granted)
			})
		parts := slices.ContainsFunc(open, func(part judge.Run) bool { return part.TickID == l.ID })
		if !excused && !l.Pending() && !(l.IsOpenTick && parts) {
			s.accuse(unsettled, l.Job, "%s: run %s of node %q is still open, and all nodes have ended", stamp(time.UnixMilli(l.Tick)), l.ID, l.NodeName)
		}
	}
}
