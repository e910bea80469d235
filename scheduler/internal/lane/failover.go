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

// assertEvery is how often a node looks, while it holds its grants, whether it may go on.
const assertEvery = 200 * time.Millisecond

// failover keeps a node from trusting a master that may have lost what it, or the one before it, had acknowledged: who
// was granted what, and what has ended. A master is known by its id, which is new after a restart and each promotion, from when it takes writes:
// nobody can tell it anything before.
//
//	open ── another id ──► telling ── told once ──► placing ── all is in place ──► waiting ── so it is for all
//	  ▲                                                                                  │        others, or
//	  └──────────────────────────────────────────────────────────────────────────────────┘        FailoverHold is over
//
// Until it has told the master of all its runs once, a node neither renews nor settles: it would be answered that nobody
// knows of such a run. What cannot be restored yet, because other nodes may have to account for ticks before it, is told
// again until all have told theirs, and then with the gap. Until the node is open again it claims nothing, for the cursors may stand
// before ticks that others are running. Scripts that grant, renew and settle refuse callers that do not know their
// server, so none of this depends on who notices first.
//
// A partition goes through this when its master has another id, or when it comes to another master. Others of the same master, which have
// been there, go on claiming; their lapsed leases are reaped a ttl later.
type failover struct {
	l    *Lane
	look chan struct{} // holds one signal: look at the master now

	partly atomic.Bool // the master did not say who it is, or is a new one that takes no writes yet

	mu     sync.Mutex
	master ledger.Master
	id     string           // of the master, as far as it has said
	epochs map[int]*epoch   // by partition, of those that the lane has
	since  time.Time        // when something was noticed
	left   map[string]int64 // runs that are to be told again; where the cursor stands that is behind them, or 0
	leftOf string           // the id that they are left of

	behind []*work.Job   // jobs that stand behind what this node knows
	last   map[int]int64 // when the master before was heard of last, by partition

	others []sharding.Node // who was there when it was noticed, whatever the master knows of them
	// What all others in the roster say of the master that was noticed.
	allTold, allPlaced bool
}

// epoch is what one partition's masters were told of this node's runs, all by their ids.
type epoch struct {
	noticed string // that this node has noticed
	told    string // that was told once of all runs: renewals and ends go there
	placed  string // that has them all in place
	open    string // that may be asked for runs; "" for none ever
	heard   int64  // when the last that was open was heard of last, ms of Redis' time; 0: never
}

func newFailover(l *Lane, m ledger.Master) *failover {
	f := &failover{l: l, master: m, id: ledger.Nobody, epochs: make(map[int]*epoch), look: l.Health.look}
	if l.apart {
		f.look = make(chan struct{}, 1)
	}
	return f
}

// begin trusts a master that has never granted this node anything, but for claiming: members of the roster may have
// something to tell it.
func (f *failover) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Now()
	for _, e := range f.epochs {
		e.noticed, e.told, e.placed = f.id, f.id, f.id
	}
}

// named takes up which id the master has, and that it was heard of, if it was.
func (f *failover) named(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id = id; f.partly.Load() {
		return // it did not say so itself
	}
	for _, e := range f.epochs {
		e.hear(id, f.l.Clock)
	}
}

// current is the id of the master, as far as it has said.
func (f *failover) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

// is takes up how the master is reached.
func (f *failover) is(m ledger.Master) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master = m
}

// at is the master.
func (f *failover) at() ledger.Master {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master
}

// give takes a partition out of the lane.
func (f *failover) give(part int) *epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	delete(f.epochs, part)
	if e.placed != e.noticed {
		e.noticed, e.told = "", ledger.Nobody // what was told half is told anew
	}
	return e
}

// take takes a partition into the lane.
func (f *failover) take(part int, e *epoch) {
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

// ask asks a master of a Cluster who it is.
func (f *failover) ask(ctx context.Context) {
	m, id, parts := f.at(), f.current(), f.parts()
	if len(parts) == 0 {
		return
	}
	if !m.Known() {
		f.partly.Store(true)
		f.l.Health.unanswered(locking.ErrUnreachable)
		return
	}
	id, err := f.l.Ledger.Identity(ctx, m, parts[0], id)
	f.partly.Store(err != nil)
	f.named(id)
}

// unchangedFor is how long ago something was noticed last.
func (f *failover) unchangedFor() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.every(func(e *epoch) bool { return e.noticed == f.id }) {
		return 0
	}
	return time.Since(f.since)
}

// servers are what the roster is told of the master: of which its partitions were told, and which has all in place.
func (f *failover) servers() (told, placed string) {
	parts := f.parts()
	f.mu.Lock()
	defer f.mu.Unlock()
	told, placed = f.common(func(e *epoch) string { return e.told }), f.common(func(e *epoch) string { return e.placed })
	if told == ledger.Nobody {
		return told, ""
	}
	return f.l.Ledger.Fingerprint(told, parts), f.l.Ledger.Fingerprint(placed, parts)
}

// common is what all of the lane's partitions have in common, Nobody when they do not. The caller has the lock.
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

// every says whether something is so for all of the lane's partitions. The caller has the lock.
func (f *failover) every(is func(*epoch) bool) bool {
	for _, e := range f.epochs {
		if !is(e) {
			return false
		}
	}
	return true
}

// claims is the id of the master that may be asked for runs of a partition; false when none may.
func (f *failover) claims(part int) (server string, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.open != f.id {
		return "", false
	}
	return e.open, true
}

// holds says whether the node claims nothing of a partition.
func (f *failover) holds(part int) bool {
	_, may := f.claims(part)
	return !may
}

// someOpen says whether the node claims something of the lane.
func (f *failover) someOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.every(func(e *epoch) bool { return e.open != f.id })
}

// hasTold says whether the master was told of all runs.
func (f *failover) hasTold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.every(func(e *epoch) bool { return e.told == f.id })
}

// keeps is the master that runs of a partition are renewed at, and their ends recorded, and which of them must wait to be restored.
func (f *failover) keeps(part int) (server string, waits map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[part]; e != nil {
		return e.told, f.left // which is never written to
	}
	return ledger.Nobody, nil
}

// noticed says whether a server is, for a partition, the one that this node has noticed last. Ends of runs that it has recorded, if it is, are remembered for one that has lost them: another one
// was told of these runs as of going ones.
func (f *failover) noticed(server string, part int, ends ...*ending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.epochs[part]
	if e == nil || e.noticed != server {
		return false
	}
	f.l.lanes.memory.add(ends)
	return true
}

var errHolding = errors.New("Redis was restarted or failed over: nothing is claimed until every node has said what it runs")

// doubt has the master looked at at once, and which partitions it has.
func (f *failover) doubt() {
	wait.Signal(f.look)
	wait.Signal(f.l.lanes.changed)
}

// seen takes up what the roster says of the master: of all nodes, those too that were there before and that it may have lost
// as well. A node that says nothing of the kind is of a version that does not know how.
func (f *failover) seen(members []roster.Member, nodes []sharding.Node) {
	parts := f.parts()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allTold = f.every(func(e *epoch) bool { return e.noticed == f.id })
	f.allPlaced = f.allTold
	server := f.l.Ledger.Fingerprint(f.id, parts)
	for _, x := range slices.Concat(nodes, f.others) {
		if x.ID == f.l.ID {
			continue
		}
		i := slices.IndexFunc(members, func(m roster.Member) bool { return m.ID == x.ID })
		mute := i >= 0 && members[i].Told == ""
		f.allTold = f.allTold && (mute || i >= 0 && ledger.HasFingerprint(members[i].Told, server))
		f.allPlaced = f.allPlaced && (mute || i >= 0 && ledger.HasFingerprint(members[i].Placed, server))
	}
}
