package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

const (
	// assertEvery is how often a node looks, while it holds its grants, whether it may go on.
	assertEvery = 200 * time.Millisecond
	// rememberFor and rememberMax bound which ends of runs a node tells again: more than any replica is behind, and
	// not more than a server can be told of in a moment.
	rememberFor     = time.Minute
	rememberMax     = 4096
	rememberPayload = 1 << 10 // bytes
)

// failover keeps a node from trusting a Redis that may have lost what it, or the server before it, had acknowledged: who
// was granted what, and what has ended. A server is known by its run_id, which is new after a restart as well.
//
//	open ── another run_id ──► asserting ── the ledger has this node's runs ──► waiting ── all others have said
//	  ▲                                                                           │        the same, or
//	  └───────────────────────────────────────────────────────────────────────────┘        FailoverHold is over
//
// While it asserts, a node neither renews nor settles: the new server would answer that it knows of no such run.
// Until it is open again it claims nothing, for the cursors may stand before ticks that others are running. A script
// that is sent to a server which the node does not know yet refuses, so none of this depends on who notices first.
type failover struct {
	n    *Node
	look chan struct{} // holds one signal: look at the server now

	mu     sync.Mutex
	server string // that this node has noticed
	since  time.Time
	told   string          // that was told of all this node's runs; in the roster
	known  string          // that has them, for renewals and ends
	open   string          // that may be asked for runs
	others []sharding.Node // who was there when it was noticed, whatever it knows of them
	all    string          // of which all others say that they have told it

	ended []ending // lately, oldest first

	behind map[string]int64 // runs whose ticks other nodes may have to account for first: where the cursor stands. Of step alone
}

// ending is a run that has ended here and was recorded.
type ending struct {
	grant  grant
	report ledger.Report
	at     time.Time
}

func newFailover(n *Node) *failover { return &failover{n: n, look: make(chan struct{}, 1)} }

// begin trusts a server that has never granted this node anything, but for claiming: members of the roster may have
// something to tell it.
func (f *failover) begin(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server, f.since, f.told, f.known = server, time.Now(), server, server
}

// claims is the server that may be asked for runs, and keeps the one that renewals and ends go to: run_ids.
func (f *failover) claims() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *failover) keeps() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// asserted is the server that was told of all this node's runs.
func (f *failover) asserted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told
}

// noticed says whether a server is the one that this node has noticed last. What another one granted it comes too
// late to be asserted, if it has not begun.
func (f *failover) noticed(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.server == server
}

// holding is why the node claims nothing, nil when it may.
func (f *failover) holding() error {
	if f.claims() != f.n.clock.server() {
		return errHolding
	}
	return nil
}

var errHolding = errors.New("Redis was restarted or failed over: nothing is claimed until every node has said what it runs")

// doubt has the server looked at at once.
func (f *failover) doubt() { signal(f.look) }

// seen takes up what the roster says: whether all nodes, those too that were there before and that the server may have lost
// as well, have told it what they run. A node that says nothing of the kind is of a version that does not know how.
func (f *failover) seen(members []sharding.Member, nodes []sharding.Node) {
	said := make(map[string]string, len(members))
	for _, m := range members {
		said[m.ID] = m.Asserted
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = f.server
	for _, x := range slices.Concat(nodes, f.others) {
		if server, there := said[x.ID]; x.ID != f.n.id && (!there || server != "" && server != f.server) {
			f.all = ""
			return
		}
	}
}

// remember keeps what was recorded of a run's end, for a server that has lost it.
func (f *failover) remember(g grant, report ledger.Report) {
	report.Output = nil // a minute of outputs is too much to keep, and of large payloads where no next attempt needs them
	if len(g.lease.Payload) > rememberPayload && !report.Rerun {
		g.lease.Payload = nil
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, ending{g, report, now})
	old := max(0, len(f.ended)-rememberMax)
	for old < len(f.ended) && now.Sub(f.ended[old].at) > rememberFor {
		old++
	}
	clear(f.ended[:old])
	f.ended = f.ended[old:]
}

// step does what there is to do about the server that the clock was read from last, and says when to look again. Only the
// clock's watch calls it.
func (f *failover) step(ctx context.Context) time.Duration {
	server := f.n.clock.server()
	f.mu.Lock()
	if f.server != server {
		f.server, f.since, f.all, f.behind, f.others = server, time.Now(), "", nil, f.n.crowd.Load().nodes
		f.n.registrar.wiped()
	}
	open, known := f.open == server, f.known == server
	may := f.all == server || time.Since(f.since) >= f.n.cfg.FailoverHold
	f.mu.Unlock()
	if open {
		return sampleEvery
	}
	if !known {
		known = f.assert(ctx, server, may)
	}
	if known && may {
		f.release(server)
		return sampleEvery
	}
	signal(f.n.beatNow) // to say so, and to hear whether the others have
	return assertEvery
}

// release lets the node claim again.
func (f *failover) release(server string) {
	f.mu.Lock()
	first, held := f.open == "", time.Since(f.since)
	f.open, f.others = server, nil
	f.mu.Unlock()
	if !first {
		f.n.log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}

// renewer renews runs at the server that knows them.
type renewer struct{ n *Node }

// Renew is for the keeper of the node's leases. While the server is one that has not been told of them, nothing is
// known of any.
func (r renewer) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers, err := r.n.ledger.At(r.n.failover.keeps()).Renew(ctx, batch)
	if errors.Is(err, ledger.ErrServer) {
		r.n.failover.doubt()
	}
	return answers, err
}
