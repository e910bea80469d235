package lane

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
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

// reapable are the lapsed leases that may be reaped. They were seen before with the same beat, and
// Redis' clock has run steadily for their ttl. If their node is in the roster, their master has
// also taken writes for that long.
func (s *sweep) reapable(ctx context.Context, lapsed []ledger.Lease) []ledger.Lease {
	now := time.Now()
	steady, nodes := s.l.steadyFor().Milliseconds(), s.l.Nodes.Living()
	var reapable []ledger.Lease
	for _, l := range lapsed {
		before, known := s.seen[l.Run]
		s.seen[l.Run] = lapsedLease{beat: l.Beat, at: now}
		seen := steady
		if slices.ContainsFunc(nodes, func(x sharding.Node) bool { return x.ID == l.Node }) { // the node lives, and may not have been able to renew
			seen = min(seen, s.writtenFor(ctx, s.l.Ledger.Partition(l.Job)).Milliseconds())
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
	for run, sight := range s.seen {
		if now.Sub(sight.at) > keepLapsed {
			delete(s.seen, run)
		}
	}
	return reapable
}

// steadyFor is how long this node has seen Redis' clock run steadily while the lane's partitions
// had their current master.
func (l *Lane) steadyFor() time.Duration {
	steady := l.Clock.steadyFor()
	if l.clustered { // else the clock knows
		steady = min(steady, l.epochs.unchangedFor())
	}
	return steady
}

// writes is the time in which a master was seen to take writes without a gap.
type writes struct{ since, last time.Time }

// writtenFor is how long this node has seen a Cluster's master take writes. It checks once a second
// when needed: a master that answers reads may refuse renewals. While the breaker is open nothing
// is checked, which is a gap.
func (s *sweep) writtenFor(ctx context.Context, part int) time.Duration {
	if !s.l.clustered {
		return math.MaxInt64 // the clock knows
	}
	now, w := time.Now(), s.writes
	if now.Sub(w.last) >= reclaimDelay {
		if err := s.l.Ledger.Writable(ctx, s.l.epochs.at(), part); err != nil {
			s.writes = writes{}
			return 0
		}
		if now.Sub(w.last) > maxGap {
			w.since = now
		}
		w.last = now
		s.writes = w
	}
	return now.Sub(w.since)
}
