package lane

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// lapsedLease is a lapsed lease as last seen.
type lapsedLease struct {
	beat int64
	at   time.Time
}

// keepLapsed is how long a lapsed lease is remembered: many times longer than a scan of all
// partitions takes.
const keepLapsed = 10 * time.Minute

// reaper settles the runs of dead nodes as abandoned.
type reaper struct {
	home     *link
	clock    *Clock
	nodes    Nodes
	jobs     *work.Jobs
	inbox    *agenda.Inbox
	listener Listener
	resample func(context.Context) // samples Redis' clock
	ignore   func(run string)      // called for a run that is not reaped, because its job's record has an unknown format
	log      *slog.Logger

	seen    map[string]lapsedLease // lapsed leases, by run
	writes  writes                 // of a Cluster's master
	unknown UnknownFormats
}

// reapable are the lapsed leases that may be reaped. They were seen before with the same beat, and
// Redis' clock has run steadily for their ttl. If their node is in the roster, their master has
// also taken writes for that long.
func (r *reaper) reapable(ctx context.Context, lapsed []ledger.Run) []ledger.Run {
	now := time.Now()
	steady, nodes := r.home.steadyFor(r.clock).Milliseconds(), r.nodes.Living()
	var reapable []ledger.Run
	for _, l := range lapsed {
		before, known := r.seen[l.ID]
		r.seen[l.ID] = lapsedLease{beat: l.Beat, at: now}
		seen := steady
		if slices.ContainsFunc(nodes, func(x sharding.Node) bool { return x.ID == l.Node }) { // the node lives, and may not have been able to renew
			seen = min(seen, r.writtenFor(ctx, r.home.ledger.Partition(l.Job)).Milliseconds())
		}
		//guard:reap-steady P4 a step of Redis' clock frees no lease that is alive
		if seen < l.TTL {
			continue
		}
		if known && before.beat == l.Beat {
			//guard:dead-runs-reaped P6 a run that died with its node is settled and frees its job
			reapable = append(reapable, l)
		}
	}
	for run, seen := range r.seen {
		if now.Sub(seen.at) > keepLapsed {
			delete(r.seen, run)
		}
	}
	return reapable
}

// writes is the time in which a master was seen to take writes without a gap.
type writes struct{ since, last time.Time }

// writtenFor is how long this node has seen a Cluster's master take writes. It checks once a second
// when needed: a master that answers reads may refuse renewals. While the breaker is open nothing
// is checked, which is a gap.
func (r *reaper) writtenFor(ctx context.Context, part int) time.Duration {
	if !r.home.clustered {
		return math.MaxInt64 // the clock has it
	}
	now, w := time.Now(), r.writes
	if now.Sub(w.last) >= reclaimDelay {
		if err := epoch.Writable(ctx, r.home.ledger, r.home.epochs.Route(), part); err != nil {
			r.writes = writes{}
			return 0
		}
		if now.Sub(w.last) > maxGap {
			w.since = now
		}
		w.last = now
		r.writes = w
	}
	return now.Sub(w.since)
}

// reap settles runs as abandoned.
func (r *reaper) reap(ctx context.Context, calls *masterCalls, reapable []ledger.Run) {
	unknown := 0
	partOf := func(l ledger.Run) int { return r.home.ledger.Partition(l.Job) }
	slices.SortStableFunc(reapable, func(a, b ledger.Run) int { return partOf(a) - partOf(b) })
	for batch := range work.Batches(reapable, ledger.BatchMax, partOf) {
		calls.ask(ctx, batch[0].Job, func(ctx context.Context) error {
			server, may := r.home.epochs.Claims(partOf(batch[0]))
			if !may {
				return nil // the next sweep tries again
			}
			statuses, err := settle.Reap(ctx, r.home.ledger, r.clock.Now().UnixMilli(), server, batch)
			if err == nil {
				unknown += r.reaped(batch, statuses)
			}
			return err
		})
		if errors.Is(calls.failed, ledger.ErrClock) {
			r.resample(ctx)
			return
		}
	}
	r.unknown.Note(unknown, "entries or histories of jobs whose runs have lapsed")
}

// reaped logs the abandoned runs, frees their jobs in the agenda, and returns how many records have
// an unknown format.
func (r *reaper) reaped(batch []ledger.Run, statuses []ledger.Status) (unknown int) {
	var free []*work.Job
	for i, l := range batch {
		switch statuses[i] {
		case settle.Reaped:
			delete(r.seen, l.ID)
			if j := r.jobs.Named(l.Job); j != nil {
				free = append(free, j)
			}
			r.log.Warn("run abandoned: its lease lapsed and its node did not come back in time", "job", l.Job,
				"tick", time.UnixMilli(l.Tick).UTC(), "run", l.ID, "node", l.NodeName, "token", l.Token)
			r.listener.Abandoned(l)
		case ledger.StatusUnknownFormat:
			unknown++
			r.ignore(l.ID)
		default: // renewed or ended meanwhile
		}
	}
	if len(free) > 0 {
		r.inbox.Send(agenda.Reaped{Jobs: free})
	}
	return unknown
}
