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
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// assertEvery is how often a node that may not claim checks whether it may again.
const assertEvery = 200 * time.Millisecond

// failover keeps a node from trusting a master that may have lost what it, or its predecessor, had
// acknowledged: grants and ends of runs. A master is known by its id, which changes with each
// restart and each promotion. A new master counts from when it takes writes, because nothing can be
// asserted to it before.
//
//	open ── another id ──► asserting ── asserted once ──► restoring ── all restored ──► waiting
//	  ▲                                                                                   │
//	  └── all other nodes have got as far, or FailoverHold is over ───────────────────────┘
//
// Before it has asserted all its runs once, a node neither renews nor settles: the master would
// answer that it knows no such run. A run that cannot be restored yet, because other nodes may have
// to assert earlier ticks, is asserted again until all nodes have done so, and then with the gap.
// Until it is open again the node claims nothing, because cursors may be behind ticks that others
// are running. The scripts that grant, renew and settle refuse callers that name another server, so
// nothing depends on who notices first.
//
// A partition goes through this when its master's id changes, or when it gets another master.
// Other partitions of that master go on claiming; their lapsed leases are reaped a ttl later.
type failover struct {
	l     *Lane
	check chan struct{} // holds one signal: check the master now

	unidentified atomic.Bool // the master did not give its id, or is new and takes no writes yet

	mu           sync.Mutex
	master       ledger.Master
	id           string           // the master's id as last known
	epochs       map[int]*epoch   // by partition, for the lane's partitions
	since        time.Time        // when a change was last noticed
	unrestored   map[string]int64 // runs that are not restored yet, with Redis' cursor where it is behind the run, else 0
	unrestoredOf string           // the server that has not restored them

	behind []*work.Job   // jobs whose cursor in Redis is behind what this node knows
	last   map[int]int64 // by partition, when the previous master last answered

	others []sharding.Node // the nodes that were alive when the change was noticed
	// What the roster says about all other nodes and the noticed master.
	allAsserted, allRestored bool
}

// epoch is what a partition's masters know of this node's runs. All fields but lastAnswer are ids of
// servers.
type epoch struct {
	noticed    string // the last one that this node has noticed
	asserted   string // all runs were asserted to it once: it gets renewals and reports
	restored   string // it has restored all runs
	open       string // it may be asked for runs; "": none ever was
	lastAnswer int64  // when the last open one last answered, ms of Redis' time; 0: never
}

func newFailover(l *Lane, m ledger.Master) *failover {
	f := &failover{l: l, master: m, id: ledger.Nobody, epochs: make(map[int]*epoch), check: l.Health.check}
	if l.clustered {
		f.check = make(chan struct{}, 1)
	}
	return f
}

// begin trusts a master that has never granted this node anything, except for claiming: other nodes
// may have runs to assert.
func (f *failover) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Now()
	for _, e := range f.epochs {
		e.noticed, e.asserted, e.restored = f.id, f.id, f.id
	}
}

// setID notes the master's id.
func (f *failover) setID(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id = id; f.unidentified.Load() {
		return // the master did not give it itself
	}
	for _, e := range f.epochs {
		e.answeredBy(id, f.l.Clock)
	}
}

// current is the master's id as last known.
func (f *failover) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

// setMaster notes how the master is reached.
func (f *failover) setMaster(m ledger.Master) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master = m
}

// at is how the master is reached.
func (f *failover) at() ledger.Master {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master
}

// removePart removes a partition from the lane.
func (f *failover) removePart(part int) *epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	delete(f.epochs, part)
	if e.restored != e.noticed {
		e.noticed, e.asserted = "", ledger.Nobody // half an assertion is repeated at the next master
	}
	return e
}

// addPart adds a partition to the lane.
func (f *failover) addPart(part int, e *epoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs[part] = e
}

// parts are the lane's partitions.
func (f *failover) parts() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.epochs))
}

// identify asks a master of a Cluster for its id.
func (f *failover) identify(ctx context.Context) {
	m, id, parts := f.at(), f.current(), f.parts()
	if len(parts) == 0 {
		return
	}
	if !m.Known() {
		f.unidentified.Store(true)
		f.l.Health.refresh(locking.ErrUnreachable)
		return
	}
	id, err := f.l.Ledger.Identity(ctx, m, parts[0], id)
	f.unidentified.Store(err != nil)
	f.setID(id)
}

// unchangedFor is the time since a change was last noticed.
func (f *failover) unchangedFor() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.every(func(e *epoch) bool { return e.noticed == f.id }) {
		return 0
	}
	return time.Since(f.since)
}

// servers are the ids that this node reports in the roster: of the master to which its runs were
// asserted, and of the one that has restored them.
func (f *failover) servers() (asserted, restored string) {
	parts := f.parts()
	f.mu.Lock()
	defer f.mu.Unlock()
	asserted, restored = f.common(func(e *epoch) string { return e.asserted }), f.common(func(e *epoch) string { return e.restored })
	if asserted == ledger.Nobody {
		return asserted, ""
	}
	return f.l.Ledger.Fingerprint(asserted, parts), f.l.Ledger.Fingerprint(restored, parts)
}

// common is a value that all of the lane's partitions share, Nobody when they do not. The caller
// holds the lock.
func (f *failover) common(of func(*epoch) string) string {
	first := true
	var all string
	for _, e := range f.epochs {
		if of := of(e); first {
			first, all = false, of
		} else if of != all {
			return ledger.Nobody
		}
	}
	return all
}

// every reports whether a condition holds for all of the lane's partitions. The caller holds the
// lock.
func (f *failover) every(is func(*epoch) bool) bool {
	for _, e := range f.epochs {
		if !is(e) {
			return false
		}
	}
	return true
}

// claims returns the id of the master that may be asked for runs of a partition; false when none
// may.
func (f *failover) claims(part int) (server string, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.open != f.id {
		return "", false
	}
	return e.open, true
}

// holds reports whether nothing is claimed from a partition.
func (f *failover) holds(part int) bool {
	_, may := f.claims(part)
	return !may
}

// someOpen reports whether the lane claims from any partition.
func (f *failover) someOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.every(func(e *epoch) bool { return e.open != f.id })
}

// allAssertedHere reports whether all runs were asserted to the current master.
func (f *failover) allAssertedHere() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.every(func(e *epoch) bool { return e.asserted == f.id })
}

// keeps returns the master that gets a partition's renewals and reports, and the runs that must
// wait until they are restored.
func (f *failover) keeps(part int) (server string, waits map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[part]; e != nil {
		return e.asserted, f.unrestored // replaced as a whole, never changed
	}
	return ledger.Nobody, nil
}

// isNoticed reports whether a server is the last one that this node has noticed for a partition. If
// so, it remembers the ends of runs that the server has recorded, for a successor that may have
// lost them. To a newer server these runs were asserted as going on.
func (f *failover) isNoticed(server string, part int, ends ...*ending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.noticed != server {
		return false
	}
	f.l.lanes.ended.add(ends)
	return true
}

var errHolding = errors.New("Redis was restarted or failed over: nothing is claimed until every node has reported its runs")

// recheck asks for an early check of the master's id and of the masters' partitions.
func (f *failover) recheck() {
	wait.Signal(f.check)
	wait.Signal(f.l.lanes.routesChanged)
}

// seen notes what the roster says of the master, for all living nodes and those that were alive
// when the change was noticed, because the master may have lost the roster too. A node that reports
// nothing has a version that does not assert.
func (f *failover) seen(members []roster.Member, nodes []sharding.Node) {
	parts := f.parts()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allAsserted = f.every(func(e *epoch) bool { return e.noticed == f.id })
	f.allRestored = f.allAsserted
	server := f.l.Ledger.Fingerprint(f.id, parts)
	for _, x := range slices.Concat(nodes, f.others) {
		if x.ID == f.l.ID {
			continue
		}
		i := slices.IndexFunc(members, func(m roster.Member) bool { return m.ID == x.ID })
		mute := i >= 0 && members[i].Asserted == ""
		f.allAsserted = f.allAsserted && (mute || i >= 0 && ledger.HasFingerprint(members[i].Asserted, server))
		f.allRestored = f.allRestored && (mute || i >= 0 && ledger.HasFingerprint(members[i].Restored, server))
	}
}
