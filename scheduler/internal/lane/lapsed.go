package lane

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// sighting is a lapsed lease as it was seen last.
type lapsedLease struct {
	beat int64
	at   time.Time
}

// forget is how long a sighting is kept after the last one: many times what a look at all
// partitions can take.
const forget = 10 * time.Minute

// ripe are the lapsed leases that may be reaped: seen before with the same beat, and Redis'
// clock has run steadily for their ttl under this node's eyes, in which their master took writes, unless their node has left the roster.
func (s *sweep) ripe(ctx context.Context, lapsed []ledger.Lease) []ledger.Lease {
	now := time.Now()
	steady, nodes := s.l.steadyFor().Milliseconds(), s.l.Nodes.Living()
	var ripe []ledger.Lease
	for _, l := range lapsed {
		before, known := s.seen[l.Run]
		s.seen[l.Run] = lapsedLease{beat: l.Beat, at: now}
		seen := steady
		if slices.ContainsFunc(nodes, func(x sharding.Node) bool { return x.ID == l.Node }) { // it lives, and may not have been able to say so
			seen = min(seen, s.writtenFor(ctx, s.l.Ledger.Partition(l.Job)).Milliseconds())
		}
		//guard:reap-steady P4 a step of Redis' clock frees no lease that is alive
		if seen < l.TTL {
			continue
		}
		if known && before.beat == l.Beat {
			//guard:dead-runs-reaped P6 a run that died with its node is settled and frees its job
			ripe = append(ripe, l)
		}
	}
	for run, sight := range s.seen {
		if now.Sub(sight.at) > forget {
			delete(s.seen, run)
		}
	}
	return ripe
}

// steadyFor is how long this node has seen Redis' clock run steadily while the lane's partitions had the master that they have.
func (l *Lane) steadyFor() time.Duration {
	steady := l.Clock.steadyFor()
	if l.apart { // else the clock knows
		steady = min(steady, l.failover.unchangedFor())
	}
	return steady
}

// writes says since when a master was seen to take writes, without a gap.
type writes struct{ since, last time.Time }

// writtenFor is how long this node has seen a master of a Cluster take writes. It asks once a second, when it matters: a master that
// answers what is read may refuse renewals. While the breaker is open nobody asks, and that is a gap.
func (s *sweep) writtenFor(ctx context.Context, part int) time.Duration {
	if !s.l.apart {
		return math.MaxInt64 // the clock knows
	}
	now, w := time.Now(), s.writes
	if now.Sub(w.last) >= askedAnew {
		if err := s.l.Ledger.Writable(ctx, s.l.failover.at(), part); err != nil {
			s.writes = writes{}
			return 0
		}
		if now.Sub(w.last) > unseen {
			w.since = now
		}
		w.last = now
		s.writes = w
	}
	return now.Sub(w.since)
}
