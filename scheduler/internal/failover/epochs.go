package failover

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// SampleEvery is how often a node samples Redis' clock and reads the ids of its masters.
	SampleEvery = time.Second
	// AssertEvery is how often a node that may not claim checks whether it may again.
	AssertEvery = 200 * time.Millisecond
)

// Clock estimates Redis' time.
type Clock interface {
	Now() time.Time
	LastRead() time.Time // by the last sample, believed or not
}

// Master is how the calls to a master go.
type Master interface {
	Fail(role string, err error) // a call failed
	Unknown()                    // the client does not know the master, and is to reload the topology
	Restored()                   // all runs are in place: earlier refusals of reports are over
	GrantsResumed()              // the node claims again
}

// Config holds what all Epochs of a node share.
type Config struct {
	ID, Name string // the node's
	Ledger   *ledger.Ledger
	Clock    Clock
	Jobs     *work.Jobs
	Reporter *Reporter
	// Restore writes the lost parts of the control record, and of the gates and incarnations of some partitions. nil: they are
	// written, or the master of the control record does not answer, and Step calls again.
	Restore    func(ctx context.Context, parts []int) error
	Beat       chan<- struct{} // holds one signal: send a heartbeat now
	Lost       chan<- struct{} // holds one signal: Redis may have lost data
	Routes     chan<- struct{} // holds one signal: look for partitions that have another master
	Hold       time.Duration   // the longest wait for other nodes
	SweepEvery time.Duration
	Log        *slog.Logger
}

// Epochs takes the partitions of one master through their epochs. It keeps the node from trusting a Redis that may have lost grants or
// ends of runs that it, or its predecessor, had acknowledged.
//
//	                    all runs, ends, cursors and      all other nodes have asserted,
//	                    backfills were reported once     or the hold is over
//	Notice ──► Assert ──────────────────────────► Hold ──────────────────────────► Account ──► grants resume
//	  ▲          ▲ │                               │                                  │
//	  │          └─┘ a call failed                 │                                  │
//	  └───────────────── an answer shows another epoch ───────────────────────────────┘
//
// Notice: an answer shows the id of another epoch, see ledger.EpochID. Scripts that grant, renew and settle refuse callers that name
// another epoch, so no promise depends on who notices first. Assert: a run that has to wait for the report of an earlier tick by another
// node is reported again until all nodes have reported; the last report names the gap before the run. Hold: its time counts from when the
// server takes writes, because nothing can be reported before; who is waited for are the nodes of the view, which does not shrink
// meanwhile. Account: ticks that no node was granted are recorded as missed.
//
// A partition goes through this also when it gets another master. Other partitions of that master go on claiming; their lapsed leases are
// reaped a ttl later. Each partition's state is an Epoch:
// in Assert the state is Asserting; in Hold it is Restoring until all runs are in place, then Waiting; Account ends with Open.
type Epochs struct {
	Config
	calls Master
	check chan<- struct{} // holds one signal: check the master now

	unidentified atomic.Bool // the master did not give its id, or is new and takes no writes yet

	mu         sync.Mutex
	route      ledger.Master
	server     string           // the master's id as last known
	epochs     map[int]*Epoch   // by partition
	since      time.Time        // when a change was last noticed
	changes    int              // how many were noticed
	young      time.Time        // until then a node that never claimed here does not
	unrestored map[string]int64 // runs that are not restored yet, with Redis' cursor where it is behind the run, else 0; nil before all were reported once

	behind []*work.Job   // jobs whose cursor in Redis is behind this node's known cursor
	last   map[int]int64 // by partition, when the last open epoch last answered

	// What the roster shows of all other nodes and these epochs.
	allAsserted, allRestored bool
}

// NewEpochs makes the epochs of a master, without partitions. check holds one signal, and requests an early Step.
func NewEpochs(c Config, route ledger.Master, calls Master, check chan<- struct{}) *Epochs {
	return &Epochs{Config: c, calls: calls, check: check, route: route, server: epoch.Nobody, epochs: make(map[int]*Epoch)}
}

// Join joins the epochs that a sample shows, in which this node was granted nothing. The node does not claim yet: other nodes may have
// runs to report.
func (es *Epochs) Join(s ledger.Sample) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.since, es.server = time.Now(), s.Server
	for part, incarnation := range s.Incarnations {
		if e := es.epochs[part]; e != nil && incarnation != "" {
			e.Join(ledger.EpochID(s.Server, incarnation))
		}
	}
	es.noteAge(s)
}

// Notice notes the epochs that a sample shows.
func (es *Epochs) Notice(s ledger.Sample) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if es.server = s.Server; es.unidentified.Load() {
		return // the master did not give the id itself
	}
	fresh, now := false, es.Clock.Now().UnixMilli()
	for part, incarnation := range s.Incarnations {
		e, id := es.epochs[part], ledger.EpochID(s.Server, incarnation)
		if e == nil {
			continue
		}
		fresh = e.Notice(id) || fresh
		e.Answered(id, now)
	}
	es.noteAge(s)
	if !fresh {
		return
	}
	for _, e := range es.epochs {
		e.Repeat() // runs that were left to restore are dropped below
	}
	es.since, es.allAsserted, es.allRestored = time.Now(), false, false
	es.changes++
	es.unrestored, es.behind = nil, nil
	wait.Signal(es.Lost)
}

// noteAge notes for how long a node without known peers must wait: Hold from the server's start, and from when nodes
// found that records were lost. Other nodes may not have noticed yet. Where a partition is not in the sample, the wait from before stays.
// The caller holds the lock.
func (es *Epochs) noteAge(s ledger.Sample) {
	const second = time.Second // in which Redis counts
	young := time.Time{}
	latest := func(until time.Time) {
		if until.After(young) {
			young = until
		}
	}
	if s.Up >= 0 {
		latest(time.Now().Add(es.Hold + second - s.Up))
	}
	for part := range es.epochs {
		incarnation, sampled := s.Incarnations[part]
		if made, after := ledger.MadeAfterLoss(incarnation); after {
			latest(time.Now().Add(es.Hold - s.Now.Sub(made)))
		} else if !sampled {
			latest(es.young)
		}
	}
	es.young = young
}

// SetRoute notes how the master is reached.
func (es *Epochs) SetRoute(m ledger.Master) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.route = m
}

// Route is how the master is reached.
func (es *Epochs) Route() ledger.Master {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.route
}

// Remove removes a partition. A report that is half done is repeated at the next master.
func (es *Epochs) Remove(part int) *Epoch {
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.epochs[part]
	delete(es.epochs, part)
	e.Leave()
	return e
}

// Add adds a partition. A step that is under way does not count for it.
func (es *Epochs) Add(part int, e *Epoch) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.epochs[part] = e
	es.changes++
}

// Parts are the partitions, in order.
func (es *Epochs) Parts() []int {
	es.mu.Lock()
	defer es.mu.Unlock()
	return slices.Sorted(maps.Keys(es.epochs))
}

// Identify reads the id of a master of a Cluster, and its partitions' incarnations.
func (es *Epochs) Identify(ctx context.Context) (s ledger.Sample, ok bool) {
	es.mu.Lock()
	m, server, parts := es.route, es.server, slices.Sorted(maps.Keys(es.epochs))
	es.mu.Unlock()
	if len(parts) == 0 {
		return s, false
	}
	if !m.Known() {
		es.unidentified.Store(true)
		es.calls.Unknown()
		return s, false
	}
	if server == epoch.Nobody {
		server = ""
	}
	s, err := epoch.Identity(ctx, es.Ledger, m, parts, server)
	es.unidentified.Store(err != nil)
	return s, err == nil
}

// Check reads the id of a master of a Cluster, and notes the epochs that it shows.
func (es *Epochs) Check(ctx context.Context) {
	if s, ok := es.Identify(ctx); ok {
		es.Notice(s)
	}
}

// SetIdentified notes whether an only server gave its id.
func (es *Epochs) SetIdentified(ok bool) { es.unidentified.Store(!ok) }

// Identified reports whether the master gave its id at the last check.
func (es *Epochs) Identified() bool { return !es.unidentified.Load() }

// Recheck requests an early check of the master's id and of the masters' partitions.
func (es *Epochs) Recheck() {
	wait.Signal(es.check)
	wait.Signal(es.Routes)
}

// id is EpochID. The caller holds the lock.
func (es *Epochs) id(part int) string {
	if e := es.epochs[part]; e != nil {
		return cmp.Or(e.ID(), epoch.Nobody)
	}
	return epoch.Nobody
}

// every reports whether a condition holds for all partitions. The caller holds the lock.
func (es *Epochs) every(is func(*Epoch) bool) bool {
	for _, e := range es.epochs {
		if !is(e) {
			return false
		}
	}
	return true
}

func known(e *Epoch) bool { return e.ID() != "" }

// reached is the condition that an epoch is at least in a state.
func reached(s State) func(*Epoch) bool { return func(e *Epoch) bool { return e.State() >= s } }
