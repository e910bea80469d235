// Package lane connects a working node with Redis: the estimate of Redis' clock, failovers, batches
// of claims and reports, renewals, the sweep, and outages.
//
// There is a Lane for each master: one for a standalone Redis or behind Sentinel, one for each
// master of a Cluster that has partitions. Lanes maps partitions to lanes.
package lane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// TakeoverMax bounds the rank that counts in a large cluster, for promise P6.
const TakeoverMax = 10

// Nodes are the living nodes in this node's view.
type Nodes interface {
	Living() []sharding.Node
	// NoNode returns why no living node can run a job in this definition with these labels; "" when
	// one can, or may.
	NoNode(job, digest string, labels map[string]string) string
	// Digests are the definitions in which living nodes that may claim hold a job; nil when the
	// answer of one of them is not known.
	Digests(job string) []string
	// Owns reports whether this node owns a job.
	Owns(j *work.Job) bool
}

// Runs are the runs on this node.
type Runs interface {
	Grants() []work.Grant
	// Cancelled ends a run that is to be cancelled or replaced, if it is here.
	Cancelled(c ledger.Cancel)
	// Progress is how far a run is, as the ledger keeps it; "" when it has reported nothing, or is not here.
	Progress(run string) string
}

// Listener gets reaped runs of other nodes, and ticks that no node can run.
type Listener interface {
	Abandoned(l ledger.Run)
	Skipped(job string, p ledger.SkippedRange)
}

// Config holds the dependencies of lanes.
type Config struct {
	Ledger    *ledger.Ledger
	ID, Name  string // the node's
	Clock     *Clock
	Health    *Health
	Jobs      *work.Jobs
	Slots     *agenda.Slots
	Inbox     *agenda.Inbox
	Answers   chan<- *work.Batch // to the agenda
	Nodes     Nodes
	Runs      Runs
	Listener  Listener
	Labels    map[string]string
	Stopping  func() bool     // the node is to stop
	TakesWork func() bool     // the node may take work: its name is not drained, and no move has closed the namespace
	Closed    func() bool     // a move has closed the namespace
	Beat      chan<- struct{} // holds one signal: send a heartbeat now
	// Restore writes the lost parts of the control record, and of the gates and incarnations of some
	// partitions. It returns ErrControlMaster when the master of the control record does not answer.
	Restore func(ctx context.Context, parts []int) error
	Lost    chan<- struct{} // holds one signal: Redis may have lost data

	MaxSkew, Grace, SweepEvery, FailoverHold time.Duration
	Log                                      *slog.Logger
}

// Lanes are the lanes of a node.
type Lanes struct {
	Config
	clustered     bool     // on a Cluster, whose masters fail one by one
	control       *breaker // for the master of the control partition: control record, roster and clock
	reporter      *failover.Reporter
	routesChanged chan struct{} // holds one signal: look for partitions that have another master

	routes atomic.Pointer[routes]

	mu    sync.Mutex // guards claims and changes of routes
	terms *Terms     // set once the lanes work
}

// New makes lanes. The caller must call Begin first.
func New(c Config) *Lanes {
	n := &Lanes{Config: c, clustered: c.Ledger.Clustered(), reporter: failover.NewReporter(c.Runs), routesChanged: make(chan struct{}, 1)}
	n.control = n.newBreaker("of the control record")
	return n
}

// mayClaim reports whether this node may claim a job now, and in which definition.
func (n *Lanes) mayClaim(name string) (digest string, yes bool) {
	j := n.Jobs.Named(name)
	if j == nil || n.Slots.Full() || !n.TakesWork() || n.Blocked(j.Part) || !sharding.Matches(j.Labels, n.Labels) {
		return "", false
	}
	return j.Digest, true
}

// Start starts all lanes and their watchers.
func (n *Lanes) Start(t Terms) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.terms = &t
	for _, l := range n.all() {
		l.start(&t)
	}
	t.Group.Go(func() { n.watchClock(t.Alive) })
	if n.clustered {
		t.Group.Go(func() { n.watchRoutes(t.Alive) })
	}
}

// Claim sends a batch of claims. It does not block.
func (n *Lanes) Claim(b *work.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of(b.Part).claims <- b
}

// Sweep requests an early sweep of a partition.
func (n *Lanes) Sweep(part int) { wait.Signal(n.of(part).early) }

// Hold keeps the lease of a run alive until it is closed or lost.
func (n *Lanes) Hold(parent context.Context, part int, g locking.Grant) *locking.Lease {
	return n.of(part).keeper.Hold(parent, g)
}

// Blocked reports whether nothing is claimed from a partition.
func (n *Lanes) Blocked(part int) bool { return n.link(part).blocked(part) }

// Overdue is how late something of a partition counts for the order of takeovers.
func (n *Lanes) Overdue(part int, by time.Duration) time.Duration {
	return n.link(part).breaker.overdue(n.Health.overdue(by))
}

// Err is why the node claims nothing, or not everything, apart from the seconds after a failover.
func (n *Lanes) Err() error {
	errs := []error{n.Health.Err(), n.blockedErr(), n.Clock.Usable(), n.Slots.Err()}
	for _, l := range n.all() {
		errs = append(errs, l.watchdog.err())
	}
	return errors.Join(errs...)
}

// blockedErr is why no job of this node is claimed; nil when some may be.
func (n *Lanes) blockedErr() (err error) {
	for _, j := range n.Jobs.All() {
		l := n.of(j.Part)
		if !l.breaker.blocks() {
			return nil
		}
		err = l.breaker.err()
	}
	return err
}

// allUnreachable reports whether all masters are unreachable.
func (n *Lanes) allUnreachable() bool {
	return !slices.ContainsFunc(n.all(), func(l *Lane) bool { return !l.breaker.open() })
}

// Unreachable reports whether Redis, or on a Cluster the master of the control partition, is
// unreachable.
func (n *Lanes) Unreachable() bool {
	return errors.Is(n.Health.Err(), locking.ErrUnreachable) || n.control.open()
}

// Beaten notes whether a heartbeat was answered.
func (n *Lanes) Beaten(err error) {
	if err != nil {
		n.control.Fail(roleBeat, err)
		return
	}
	n.control.ok(roleBeat)
	if !n.clustered { // on a Cluster this covers one master only, see sweep.writtenFor
		n.Clock.noteWrite()
	}
}

// At calls a partition's master for a role that can go on without it. It returns ErrBreaker when
// the master is unreachable.
func (n *Lanes) At(role string, part int, ask func() error) error {
	b := n.of(part).breaker
	if b.open() {
		return ErrBreaker
	}
	err := b.full(ask())
	if !n.clustered || !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	b.Fail(role, err)
	return ErrBreaker
}

// MarkUnreachable notes that the masters of some partitions did not answer a role.
func (n *Lanes) MarkUnreachable(role string, err error, parts []int) {
	for _, l := range n.all() {
		if slices.ContainsFunc(parts, func(p int) bool { return n.of(p) == l }) {
			l.breaker.Fail(role, err)
		}
	}
}

// Master is a Redis master as a node finds it.
type Master struct {
	Addr string // "" for an only server
	Up   bool   // it answers and takes writes
}

// Masters are the masters of the lanes.
func (n *Lanes) Masters() []Master {
	answers := n.Health.answers()
	all := make([]Master, 0, len(n.all()))
	for _, l := range n.all() {
		up := answers
		if n.clustered {
			up = !l.breaker.open()
		}
		all = append(all, Master{l.addr, up})
	}
	return all
}

// NoNodes is how many overdue jobs are known to have no living node that can run them.
func (n *Lanes) NoNodes() (known int64) {
	for _, l := range n.all() {
		known += l.sweep.unrunnable.count.Load()
	}
	return known
}
