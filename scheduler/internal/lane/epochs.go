package lane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// assertEvery is how often a node that may not claim checks whether it may again.
const assertEvery = 200 * time.Millisecond

// epochs takes a lane's partitions through their epochs, see package failover. It keeps the node from trusting a Redis that may have lost
// what it, or its predecessor, had acknowledged: grants and ends of runs.
//
// An epoch begins for the node when an answer shows the id of another one; see ledger.EpochID. The scripts that grant, renew and settle
// refuse callers that name another epoch, so nothing depends on who notices first. The hold counts from when the server takes writes, because
// nothing can be reported before. Who is waited for: the nodes of the view, which does not shrink meanwhile.
//
// A run that cannot be restored yet, because other nodes may have to report earlier ticks, is reported again until all nodes have done so,
// and then with the gap.
//
// A partition goes through this also when it gets another master. Other partitions of that master go on claiming; their lapsed leases are
// reaped a ttl later.
type epochs struct {
	l     *Lane
	check chan struct{} // holds one signal: check the master now

	unidentified atomic.Bool // the master did not give its id, or is new and takes no writes yet

	mu         sync.Mutex
	master     ledger.Master
	server     string                  // the master's id as last known
	epochs     map[int]*failover.Epoch // by partition, for the lane's partitions
	since      time.Time               // when a change was last noticed
	changes    int                     // how many were noticed
	young      time.Time               // until then a node that never claimed here does not
	unrestored map[string]int64        // runs that are not restored yet, with Redis' cursor where it is behind the run, else 0; nil before all were reported once

	behind []*work.Job   // jobs whose cursor in Redis is behind what this node knows
	last   map[int]int64 // by partition, when the last open epoch last answered

	// What the roster says about all other nodes and these epochs.
	allAsserted, allRestored bool
}

func newEpochs(l *Lane, m ledger.Master) *epochs {
	f := &epochs{l: l, master: m, server: ledger.Nobody, epochs: make(map[int]*failover.Epoch), check: l.Health.check}
	if l.clustered {
		f.check = make(chan struct{}, 1)
	}
	return f
}

// begin joins the epochs that a sample shows, in which this node was granted nothing. It does not claim yet: other nodes may have runs
// to report.
func (f *epochs) begin(s ledger.Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since, f.server = time.Now(), s.Server
	for part, incarnation := range s.Incarnations {
		if e := f.epochs[part]; e != nil && incarnation != "" {
			e.Join(ledger.EpochID(s.Server, incarnation))
		}
	}
	f.noteAge(s)
}

// sampled notes the epochs that a sample shows.
func (f *epochs) sampled(s ledger.Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server = s.Server; f.unidentified.Load() {
		return // the master did not give the id itself
	}
	fresh, now := false, f.l.Clock.Now().UnixMilli()
	for part, incarnation := range s.Incarnations {
		e, id := f.epochs[part], ledger.EpochID(s.Server, incarnation)
		if e == nil {
			continue
		}
		fresh = e.Notice(id) || fresh
		e.Answered(id, now)
	}
	f.noteAge(s)
	if !fresh {
		return
	}
	for _, e := range f.epochs {
		e.Repeat() // what they had left to restore is dropped below
	}
	f.since, f.allAsserted, f.allRestored = time.Now(), false, false
	f.changes++
	f.unrestored, f.behind = nil, nil
	f.l.lanes.signalLost()
}

// noteAge notes for how long a node that knows no other one must wait: FailoverHold from the server's start, and from when nodes
// found that records were lost. Other nodes may not have noticed yet. Where a partition is not in the sample, the wait from before stays.
// The caller holds the lock.
func (f *epochs) noteAge(s ledger.Sample) {
	const second = time.Second // in which Redis counts
	young := time.Time{}
	latest := func(until time.Time) {
		if until.After(young) {
			young = until
		}
	}
	if s.Up >= 0 {
		latest(time.Now().Add(f.l.FailoverHold + second - s.Up))
	}
	for part := range f.epochs {
		incarnation, sampled := s.Incarnations[part]
		if made, after := ledger.MadeAfterLoss(incarnation); after {
			latest(time.Now().Add(f.l.FailoverHold - s.Now.Sub(made)))
		} else if !sampled {
			latest(f.young)
		}
	}
	f.young = young
}

// setMaster notes how the master is reached.
func (f *epochs) setMaster(m ledger.Master) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master = m
}

// at is how the master is reached.
func (f *epochs) at() ledger.Master {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master
}

// removePart removes a partition from the lane. Half a report is repeated at the next master.
func (f *epochs) removePart(part int) *failover.Epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	delete(f.epochs, part)
	e.Leave()
	return e
}

// addPart adds a partition to the lane. A step that is under way does not count for it.
func (f *epochs) addPart(part int, e *failover.Epoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs[part] = e
	f.changes++
}

// parts are the lane's partitions.
func (f *epochs) parts() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.epochs))
}

// identify asks a master of a Cluster for its id and its partitions' incarnations.
func (f *epochs) identify(ctx context.Context) (s ledger.Sample, ok bool) {
	f.mu.Lock()
	m, server, parts := f.master, f.server, slices.Sorted(maps.Keys(f.epochs))
	f.mu.Unlock()
	if len(parts) == 0 {
		return s, false
	}
	if !m.Known() {
		f.unidentified.Store(true)
		f.l.Health.refresh(locking.ErrUnreachable)
		return s, false
	}
	if server == ledger.Nobody {
		server = ""
	}
	s, err := f.l.Ledger.Identity(ctx, m, parts, server)
	f.unidentified.Store(err != nil)
	return s, err == nil
}

// look asks a master of a Cluster, and notes the epochs that it shows.
func (f *epochs) look(ctx context.Context) {
	if s, ok := f.identify(ctx); ok {
		f.sampled(s)
	}
}

// unchangedFor is the time since a change was last noticed.
func (f *epochs) unchangedFor() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.every(func(e *failover.Epoch) bool { return e.ID() != "" }) {
		return 0
	}
	return time.Since(f.since)
}

// every reports whether a condition holds for all of the lane's partitions. The caller holds the
// lock.
func (f *epochs) every(is func(*failover.Epoch) bool) bool {
	for _, e := range f.epochs {
		if !is(e) {
			return false
		}
	}
	return true
}

// claims returns the id of the epoch in which runs of a partition may be claimed; false when there is none.
func (f *epochs) claims(part int) (epoch string, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.State() != failover.Open {
		return "", false
	}
	return e.ID(), true
}

// holds reports whether nothing is claimed from a partition.
func (f *epochs) holds(part int) bool {
	_, may := f.claims(part)
	return !may
}

// someOpen reports whether the lane claims from any partition.
func (f *epochs) someOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.every(func(e *failover.Epoch) bool { return e.State() != failover.Open })
}

// held reports whether the lane has begun an epoch in which it waits for other nodes: for FailoverHold, as step does.
func (f *epochs) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.since) < f.l.FailoverHold && !f.every(func(e *failover.Epoch) bool { return e.ID() == "" || e.State() == failover.Open })
}

// allAssertedHere reports whether all runs were reported in the current epochs.
func (f *epochs) allAssertedHere() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.every(func(e *failover.Epoch) bool { return e.State() >= failover.Restoring })
}

// keeps returns the epoch in which a partition's leases are renewed and its reports recorded, and the runs that must
// wait until they are restored.
func (f *epochs) keeps(part int) (epoch string, waits map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[part]; e != nil && e.State() >= failover.Restoring {
		return e.ID(), f.unrestored // replaced as a whole, never changed
	}
	return ledger.Nobody, nil
}

// isNoticed reports whether an epoch is the last one that this node has noticed for a partition. If
// so, it remembers the ends of runs that Redis has recorded, for a later epoch in which they may be
// lost. In a newer epoch these runs were reported as going on.
func (f *epochs) isNoticed(epoch string, part int, ends ...*ending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.ID() != epoch {
		return false
	}
	f.l.lanes.ended.add(ends)
	return true
}

// errYoung is why a node that joins claims nothing yet.
var errYoung = errors.New("Redis has just been started, or has lost records: nothing is claimed until nodes that know of runs have had the time to report them")

var errHolding = errors.New("Redis was restarted, has failed over or lost records: nothing is claimed until every node has reported its runs")

// recheck asks for an early check of the master's id and of the masters' partitions.
func (f *epochs) recheck() {
	wait.Signal(f.check)
	wait.Signal(f.l.lanes.routesChanged)
}
