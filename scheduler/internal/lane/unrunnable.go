package lane

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// noNodeCheck is how long a job must be due before the sweep checks whether any living node can
	// run it. If none can, the checks become rarer, down to one in noNodeLongest. noNodeSure is how
	// long after the first check ticks may be given up, because nodes may just be starting.
	noNodeCheck   = 10 * time.Second
	noNodeSure    = time.Minute
	noNodeLongest = time.Hour
	// noNodesMax bounds the checks in one sweep, noNodesKnown the jobs that are remembered.
	noNodesMax   = 32
	noNodesKnown = 1024
)

// noNode is an overdue job that no living node can run.
type noNode struct {
	checks        int
	cursor, until int64 // the cursor, and until when it is put off, ms
	since, logged time.Time
	digest        string // of the stored definition
	labels        map[string]string
}

// unrunnable finds overdue jobs that no living node can run.
type unrunnable struct {
	home     *link
	clock    *Clock
	by       claim.Claimer // this node
	nodes    Nodes
	jobs     *work.Jobs
	cursors  *failover.Cursors
	closed   func() bool // a move has closed the namespace
	listener Listener
	log      *slog.Logger

	noNode  map[string]noNode    // jobs that no living node can run
	hasNode map[string]time.Time // when an overdue job was last seen to have a node that can run it
	count   atomic.Int64         // how many overdue jobs of the last sweep no living node can run
}

// countNoNode is how many overdue jobs are known to have no node. A job whose next check is over
// was checked by another node, which counts it, or exists no more.
func (u *unrunnable) countNoNode(now int64) (known int64) {
	for _, n := range u.noNode {
		if n.until+noNodeCheck.Milliseconds() > now {
			known++
		}
	}
	return known
}

// runnableAgain brings the next check of jobs forward that some node can run again. That node may
// have registered them before a network outage, and does not register them again.
func (u *unrunnable) runnableAgain(ctx context.Context, calls *masterCalls) {
	budget := noNodesMax
	for _, name := range slices.Sorted(maps.Keys(u.noNode)) {
		n := u.noNode[name]
		if u.nodes.NoNode(name, n.digest, n.labels) != "" {
			continue
		}
		if budget--; budget < 0 {
			return
		}
		calls.ask(ctx, name, func(ctx context.Context) error {
			err := claim.Postpone(ctx, u.home.ledger, query.Late{Job: name, Cursor: n.until}, n.cursor)
			if err == nil {
				delete(u.noNode, name)
			}
			return err
		})
	}
}

// drop removes overdue jobs from a sweep that no living node can run. It records their
// late ticks as missed and postpones the next check, for all nodes. While a move has closed the
// namespace, its nodes may be at the other side.
func (u *unrunnable) drop(ctx context.Context, calls *masterCalls, late []query.Late, now int64) []query.Late {
	defer func() { u.count.Store(u.countNoNode(now)) }()
	if u.closed() {
		return late
	}
	u.runnableAgain(ctx, calls)
	maps.DeleteFunc(u.hasNode, func(_ string, at time.Time) bool { return time.Since(at) >= noNodeCheck })
	budget := noNodesMax
	return slices.DeleteFunc(late, func(l query.Late) bool {
		_, known := u.noNode[l.Job]
		_, looked := u.hasNode[l.Job]
		if looked || !known && (now-l.Cursor < noNodeCheck.Milliseconds() || u.runnableHere(l.Job)) {
			return false
		}
		if budget--; budget < 0 {
			return known
		}
		return u.check(ctx, calls, l, now)
	})
}

// runnableHere reports whether this node has registered a job and has a node in its view that can
// run it.
func (u *unrunnable) runnableHere(name string) bool {
	j := u.jobs.Named(name)
	return j != nil && u.cursors.IsRegistered(j) && u.nodes.NoNode(name, j.Digest, j.Labels) == ""
}

// check reports whether no living node can run an overdue job. If so, it gives up its late
// ticks and postpones the job.
func (u *unrunnable) check(ctx context.Context, calls *masterCalls, l query.Late, now int64) (none bool) {
	var stored query.Stored
	read := false
	calls.ask(ctx, l.Job, func(ctx context.Context) (err error) {
		stored, err = query.Job(ctx, u.home.ledger, l.Job)
		read = err == nil && stored.Err == nil
		return err
	})
	d, err := jobs.ParseDefinition(stored.Definition)
	why := u.nodes.NoNode(l.Job, stored.Digest, d.Labels)
	if !read || err != nil || why == "" {
		if len(u.hasNode) < noNodesKnown {
			u.hasNode[l.Job] = time.Now()
		}
		delete(u.noNode, l.Job)
		return false
	}
	n, known := u.noNode[l.Job]
	if !known {
		if len(u.noNode) >= noNodesKnown { // some may have been removed long ago
			clear(u.noNode)
		}
		n.since = time.Now()
	}
	n.cursor, n.digest, n.labels = stored.Cursor, stored.Digest, d.Labels
	if time.Since(n.logged) >= noNodeLongest {
		n.logged = time.Now()
		u.log.Warn("no living node can run this job; it is checked more and more rarely until one can, or until `jobs delete`",
			"job", l.Job, "why", why, "overdue_since", time.UnixMilli(n.cursor).UTC())
	}
	if time.Since(n.since) >= noNodeSure {
		n.cursor = u.giveUp(ctx, calls, stored, d, now)
	}
	seen := l
	if n.cursor != stored.Cursor {
		seen.Cursor = n.cursor
	}
	n.checks, n.until = n.checks+1, now+min(noNodeLongest, noNodeCheck<<min(n.checks, 10)).Milliseconds()
	u.noNode[l.Job] = n
	if n.cursor != 0 {
		calls.ask(ctx, l.Job, func(ctx context.Context) error { return claim.Postpone(ctx, u.home.ledger, seen, n.until) })
	}
	return true
}

// giveUp records the late ticks of a job that no living node can run as missed, and returns the
// job's cursor after that.
func (u *unrunnable) giveUp(ctx context.Context, calls *masterCalls, stored query.Stored, d jobs.Definition, now int64) (cursor int64) {
	j := d.Job
	schedule, err := j.ParsedSchedule()
	if err != nil || schedule == nil {
		return stored.Cursor
	}
	skipped, next := agenda.NoNode(j, schedule, stored.Cursor, stored.Pause, now)
	if len(skipped) == 0 {
		return stored.Cursor
	}
	c := claim.Claim{
		Job: stored.Job, Digest: stored.Digest, Run: u.by.ID + " gives up", TTL: time.Second, Overlap: j.Overlap, Attempts: 1,
		From: stored.Cursor, Skipped: skipped, Next: next, MaxRuns: j.MaxRuns,
	}
	cursor = stored.Cursor
	calls.ask(ctx, stored.Job, func(ctx context.Context) error {
		server, may := u.home.epochs.Claims(u.home.ledger.Partition(stored.Job))
		if !may {
			return nil // the next check does it
		}
		got, err := claim.Send(ctx, u.home.ledger.At(server), u.by, u.clock.Now().UnixMilli(), []claim.Claim{c})
		if err != nil || got[0].Verdict != claim.RecordedOnly {
			return err
		}
		cursor = next
		if got[0].Detail == ledger.ReasonMaxRuns {
			cursor, skipped = 0, nil
		}
		for _, p := range skipped {
			u.log.Warn("ticks not run: no living node can run the job", "job", stored.Job, "tick", time.UnixMilli(p.First).UTC(),
				"until", time.UnixMilli(p.Last).UTC(), "count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
			u.listener.Skipped(stored.Job, p)
		}
		return nil
	})
	return cursor
}
