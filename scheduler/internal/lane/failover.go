package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/sharding"
)

// assertEvery is how often a node looks, while it holds its grants, whether it may go on.
const assertEvery = 200 * time.Millisecond

// failover keeps a node from trusting a Redis that may have lost what it, or the server before it, had acknowledged: who
// was granted what, and what has ended. A server is known by its id, which is new after a restart and each promotion, from when it takes writes:
// nobody can tell it anything before.
//
//	open ── another id ──► telling ── told once ──► placing ── all is in place ──► waiting ── so it is for all
//	  ▲                                                                                  │        others, or
//	  └──────────────────────────────────────────────────────────────────────────────────┘        FailoverHold is over
//
// Until it has told the server of all its runs once, a node neither renews nor settles: it would be answered that nobody
// knows of such a run. What cannot be restored yet, because other nodes may have to account for ticks before it, is told
// again until all have told theirs, and then with the gap. Until the node is open again it claims nothing, for the cursors may stand
// before ticks that others are running. Scripts that grant, renew and settle refuse callers that do not know their
// server, so none of this depends on who notices first.
//
// On a Cluster each partition has a server of its own. One whose master is the same as before has lost nothing: nothing is told of
// it, and what it claims, renews and settles goes on, unless the master of the control record is another one.
type failover struct {
	n    *Lane
	look chan struct{} // holds one signal: look at the server now

	partly atomic.Bool // a master of a Cluster did not say who it is, or a new server takes no writes yet

	mu     sync.Mutex
	server string // that this node has noticed
	since  time.Time
	told   string           // that was told once of all this node's runs: renewals and ends go there
	placed string           // that has them all in place
	open   string           // that may be asked for runs
	left   map[string]int64 // runs that are to be told again; where the cursor stands that is behind them, or 0
	leftOf string           // the server that they are left of
	kept   []string         // by partition, the master that has all of this node's runs of it, "" for none
	shut   shut
	memory memory

	others []sharding.Node // who was there when it was noticed, whatever the server knows of them
	// What all others in the roster say of the server that was noticed.
	allTold, allPlaced bool
}

func newFailover(n *Lane) *failover { return &failover{n: n, look: n.Health.look} }

// begin trusts a server that has never granted this node anything, but for claiming: members of the roster may have
// something to tell it.
func (f *failover) begin(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server, f.since, f.told, f.placed = server, time.Now(), server, server
	f.kept = f.n.Ledger.ByPartition(server)
}

// servers are the ids of the server that this node's runs were told to, and of the one that has them all in place.
func (f *failover) servers() (told, placed string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told, f.placed
}

// claims is the server that may be asked for runs.
func (f *failover) claims() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// keeps is the server that runs are renewed at, and their ends recorded, and which of them must wait to be restored.
func (f *failover) keeps() (server string, waits map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told, f.left // which is never written to
}

// noticed says whether a server is, for a partition, the one that this node has noticed last. What another one granted it comes too
// late to be told, if it has not begun.
func (f *failover) noticed(server string, part int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.same(f.server, server, part)
}

// same says whether a partition has the same master under two servers' names.
func (f *failover) same(a, b string, part int) bool {
	return a == b || f.n.Ledger.Master(a, part) == f.n.Ledger.Master(b, part)
}

// remember keeps ends of a partition's runs that a server has recorded, for one that has lost them. False: another server was noticed
// meanwhile, which was told of these runs as of going ones.
func (f *failover) remember(server string, part int, ends []*ending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.same(f.server, server, part) {
		return false
	}
	f.memory.add(ends)
	return true
}

// holding is why the node claims nothing, nil when it may, if not of all partitions.
func (f *failover) holding() error {
	if f.holds(home) {
		return errHolding
	}
	return nil
}

// holds says whether the node claims nothing of a partition, or of home, nothing at all.
func (f *failover) holds(part int) bool {
	server := f.n.Clock.Server()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == server {
		return false
	}
	l, s := f.n.Ledger, &f.shut
	if s.open != f.open || s.server != server { // asked for every job, and names are long
		before, now := l.ByPartition(f.open), l.ByPartition(server)
		*s = shut{open: f.open, server: server, all: l.Home(f.open) != l.Home(server), parts: make([]bool, len(now))}
		for p := range now {
			s.parts[p] = before[p] != now[p]
		}
	}
	return s.all || part != home && s.parts[part]
}

// shut are the partitions whose master is, in a server's name, not the one that it is in that of the open one; all, when the control
// record's is not.
type shut struct {
	open, server string
	all          bool
	parts        []bool
}

var errHolding = errors.New("Redis was restarted or failed over: nothing is claimed until every node has said what it runs")

// doubt has the server looked at at once.
func (f *failover) doubt() { wait.Signal(f.look) }

// seen takes up what the roster says of the server: of all nodes, those too that were there before and that it may have lost
// as well. A node that says nothing of the kind is of a version that does not know how.
func (f *failover) seen(members []sharding.Member, nodes []sharding.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allTold, f.allPlaced = true, true
	server := ledger.Fingerprint(f.server)
	for _, x := range slices.Concat(nodes, f.others) {
		if x.ID == f.n.ID {
			continue
		}
		i := slices.IndexFunc(members, func(m sharding.Member) bool { return m.ID == x.ID })
		mute := i >= 0 && members[i].Told == ""
		f.allTold = f.allTold && (mute || i >= 0 && members[i].Told == server)
		f.allPlaced = f.allPlaced && (mute || i >= 0 && members[i].Placed == server)
	}
}

// step does what there is to do about the server that the clock was read from last, and says when to look again. Only the
// clock's watch calls it.
func (f *failover) step(ctx context.Context) time.Duration {
	server := f.n.Clock.Server()
	f.mu.Lock()
	if f.server != server {
		f.notice(server)
	}
	open, placed := f.open == server, f.placed == server
	over := time.Since(f.since) >= f.n.FailoverHold
	last, may := f.allTold || over, f.allPlaced || over
	f.mu.Unlock()
	if open {
		return f.nextLook()
	}
	if !placed {
		placed = f.assert(ctx, server, last)
	}
	ready := placed
	//guard:grants-wait P1 a Redis that may have lost grants is asked for none before all nodes have told it theirs
	if !may {
		ready = false
	}
	if ready {
		f.release(server)
		return f.nextLook()
	}
	wait.Signal(f.n.Beat) // to say so, and to hear whether the others have
	return assertEvery
}

// notice takes up that there is another server. The caller has the lock.
func (f *failover) notice(server string) {
	f.server, f.since, f.allTold, f.allPlaced = server, time.Now(), false, false
	f.others, f.left, f.leftOf = f.n.Nodes.Living(), nil, ""
	// One that has come back has not heard of what was granted meanwhile.
	if f.told == server {
		f.told, f.placed = ledger.Nobody, ""
	}
	//guard:back-is-new P1 a server that has come back is asked for nothing before it was told
	if f.open == server {
		f.open = ledger.Nobody
	}
	for p, master := range f.n.Ledger.ByPartition(server) {
		if f.kept[p] != master {
			f.kept[p] = ""
		}
	}
	f.n.lose()
}

// nextLook is when a node that claims looks at the server again: soon, where it has not seen all of it. All nodes are to know
// within FailoverHold of the first who has taken the place of a master.
func (f *failover) nextLook() time.Duration {
	if f.partly.Load() {
		return assertEvery
	}
	return sampleEvery
}

// release lets the node claim again.
func (f *failover) release(server string) {
	f.mu.Lock()
	first, held := f.open == "", time.Since(f.since)
	f.open, f.others = server, nil
	f.mu.Unlock()
	if !first {
		f.n.Health.asks()
		f.n.Log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}

// part has a node that ends tell a server of its runs that it has not told yet, or has not noticed, for FailoverHold at most.
func (f *failover) part(ctx context.Context) {
	if !f.n.Away() {
		f.n.Resample(ctx)
	}
	for end := time.Now().Add(f.n.FailoverHold); time.Now().Before(end) && !f.n.Away(); {
		if told, _ := f.servers(); told == f.n.Clock.Server() || !wait.For(ctx, assertEvery/4) {
			return
		}
		f.doubt()
	}
}
