package lane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

const (
	// noNodeAfter is how long a job must be due before the sweep checks whether any living node can
	// run it. If none can, the checks become rarer, down to one in noNodeLongest. noNodeSure is how
	// long after the first check ticks may be given up, because nodes may just be starting.
	noNodeAfter   = 10 * time.Second
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

// countNoNode is how many overdue jobs are known to have no node. One whose next check is over was checked by another
// node, which counts it, or is there no more.
func (s *sweep) countNoNode(now int64) (known int) {
	for _, n := range s.noNode {
		if n.until+noNodeAfter.Milliseconds() > now {
			known++
		}
	}
	return known
}

// runnableAgain brings the next check of jobs forward that some node can run again. That node may
// have registered them before a network outage, and does not register them again.
func (s *sweep) runnableAgain(ctx context.Context) {
	budget := noNodesMax
	for _, name := range slices.Sorted(maps.Keys(s.noNode)) {
		n := s.noNode[name]
		if !s.l.Nodes.Runs(name, n.digest, n.labels) {
			continue
		}
		if budget--; budget < 0 {
			return
		}
		s.ask(ctx, name, func(ctx context.Context) error {
			err := s.l.Ledger.Postpone(ctx, ledger.Late{Job: name, Cursor: n.until}, n.cursor)
			if err == nil {
				delete(s.noNode, name)
			}
			return err
		})
	}
}

// dropUnrunnable removes overdue jobs from a sweep that no living node can run. It records their
// late ticks as missed and postpones the next check, for all nodes. While a move has closed the
// namespace, its nodes may be at the other side.
func (s *sweep) dropUnrunnable(ctx context.Context, late []ledger.Late, now int64) []ledger.Late {
	if s.l.Closed() {
		return late
	}
	s.runnableAgain(ctx)
	maps.DeleteFunc(s.hasNode, func(_ string, at time.Time) bool { return time.Since(at) >= noNodeAfter })
	budget := noNodesMax
	return slices.DeleteFunc(late, func(l ledger.Late) bool {
		_, known := s.noNode[l.Job]
		_, looked := s.hasNode[l.Job]
		if looked || !known && (now-l.Cursor < noNodeAfter.Milliseconds() || s.runnableHere(l.Job)) {
			return false
		}
		if budget--; budget < 0 {
			return known
		}
		return s.checkNoNode(ctx, l, now)
	})
}

// runnableHere reports whether this node has registered a job and knows a node that can run it.
func (s *sweep) runnableHere(name string) bool {
	j := s.l.Jobs.Named(name)
	return j != nil && s.l.lanes.cursors.has(j) && s.l.Nodes.Runs(name, j.Digest, j.Labels)
}

// checkNoNode reports whether no living node can run an overdue job. If so, it gives up its late
// ticks and postpones the job.
func (s *sweep) checkNoNode(ctx context.Context, l ledger.Late, now int64) (none bool) {
	var stored ledger.Stored
	read := false
	s.ask(ctx, l.Job, func(ctx context.Context) (err error) {
		stored, err = s.l.Ledger.Job(ctx, l.Job)
		read = err == nil && stored.Err == nil
		return err
	})
	d, err := jobs.ParseDefinition(stored.Definition)
	if !read || err != nil || s.l.Nodes.Runs(l.Job, stored.Digest, d.Labels) {
		if len(s.hasNode) < noNodesKnown {
			s.hasNode[l.Job] = time.Now()
		}
		delete(s.noNode, l.Job)
		return false
	}
	n, known := s.noNode[l.Job]
	if !known {
		if len(s.noNode) >= noNodesKnown { // some may have been removed long ago
			clear(s.noNode)
		}
		n.since = time.Now()
	}
	n.cursor, n.digest, n.labels = stored.Cursor, stored.Digest, d.Labels
	if time.Since(n.logged) >= noNodeLongest {
		n.logged = time.Now()
		s.l.Log.Warn("no living node can run this job; it is checked more and more rarely until one can, or until `jobs remove`",
			"job", l.Job, "why", s.why(l.Job, d), "overdue_since", time.UnixMilli(n.cursor).UTC())
	}
	if time.Since(n.since) >= noNodeSure {
		n.cursor = s.giveUp(ctx, stored, d, now)
	}
	seen := l
	if n.cursor != stored.Cursor {
		seen.Cursor = n.cursor
	}
	n.checks, n.until = n.checks+1, now+min(noNodeLongest, noNodeAfter<<min(n.checks, 10)).Milliseconds()
	s.noNode[l.Job] = n
	if n.cursor != 0 {
		s.ask(ctx, l.Job, func(ctx context.Context) error { return s.l.Ledger.Postpone(ctx, seen, n.until) })
	}
	return true
}

// why says why no living node can run a job.
func (s *sweep) why(job string, d jobs.Definition) string {
	switch held := s.l.Nodes.Digests(job); {
	case len(held) == 0:
		return "none holds it"
	case len(d.Labels) > 0 && slices.Contains(held, d.Digest()):
		return "none that holds it has its labels " + labelWords(d.Labels)
	}
	return fmt.Sprintf("none holds the stored definition, of generation %q", d.Generation)
}

// labelWords are labels by name: "disk=fast, zone=a".
func labelWords(labels map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+"="+labels[name])
	}
	return strings.Join(words, ", ")
}

// giveUp records the late ticks of a job that no living node can run as missed, and returns the
// job's cursor after that.
func (s *sweep) giveUp(ctx context.Context, stored ledger.Stored, d jobs.Definition, now int64) (cursor int64) {
	j := d.Job
	schedule, err := j.ParsedSchedule()
	if err != nil || schedule == nil {
		return stored.Cursor
	}
	passes, next := agenda.NoNode(j, schedule, stored.Cursor, stored.Pause, now)
	if len(passes) == 0 {
		return stored.Cursor
	}
	c := ledger.Claim{
		Job: stored.Job, Digest: stored.Digest, Run: s.l.ID + " gives up", TTL: time.Second, Overlap: j.Overlap, Attempts: 1,
		From: stored.Cursor, Passes: passes, Next: next, MaxRuns: j.MaxRuns,
	}
	cursor = stored.Cursor
	s.ask(ctx, stored.Job, func(ctx context.Context) error {
		server, may := s.l.epochs.claims(s.l.Ledger.Partition(stored.Job))
		if !may {
			return nil // the next check does it
		}
		got, err := s.l.Ledger.At(server).Claim(ctx, ledger.Claimer{ID: s.l.ID, Name: s.l.Name}, s.l.Clock.Now().UnixMilli(), []ledger.Claim{c})
		if err != nil || got[0].Verdict != ledger.Passed {
			return err
		}
		cursor = next
		if got[0].Detail == ledger.ReasonMaxRuns {
			cursor, passes = 0, nil
		}
		for _, p := range passes {
			s.l.Log.Warn("ticks not run: no living node can run the job", "job", stored.Job, "tick", time.UnixMilli(p.First).UTC(),
				"until", time.UnixMilli(p.Last).UTC(), "count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
			s.l.Listener.Skipped(stored.Job, p)
		}
		return nil
	})
	return cursor
}
