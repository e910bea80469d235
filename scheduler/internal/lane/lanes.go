// Package lane is everything that a node has to do with its Redis while it works: the estimate of Redis' clock, what has to be told to a
// server that may have lost writes, the batches of claims, renewals and ends of runs, the sweep, and what of all that is not answered.
//
// There is a Lane for each master: one for a standalone Redis or behind Sentinel, one for each master that has partitions on a Cluster. Lanes
// knows which partition has which.
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
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// TurnsMax bounds the wait of the last in a large cluster, in turns, for promise P6.
const TurnsMax = 10

// Nodes are the nodes of the cluster, as this one knows them.
type Nodes interface {
	Living() []sharding.Node
	// Runs says whether any living node that may claim holds a job in this definition and has these labels, or may.
	Runs(job, digest string, labels map[string]string) bool
	// Digests are the definitions in which those nodes hold a job; nil when what one of them holds is not known.
	Digests(job string) []string
}

// Runs are the runs that are here.
type Runs interface {
	Grants() []work.Grant
	// Cancelled ends a run that somebody wants ended, if it is here.
	Cancelled(c ledger.Cancel)
}

// Listener is told of runs of other nodes that were ended, and of ticks that no node can run.
type Listener interface {
	Abandoned(l ledger.Lease)
	Missed(job string, p ledger.SkippedRange)
}

// Config is what lanes need.
type Config struct {
	Ledger   *ledger.Ledger
	ID, Name string // the node's
	Clock    *Clock
	Health   *Health
	Jobs     *work.Jobs
	Slots    *agenda.Slots
	Inbox    *agenda.Inbox
	Answers  chan<- *work.Batch // to the agenda
	Nodes    Nodes
	Runs     Runs
	Listener Listener
	Labels   map[string]string
	Leaving  func() bool     // the node was told to end
	Works    func() bool     // it takes work: nobody has drained its name, and no move has closed the namespace
	Closed   func() bool     // a move has closed the namespace
	Beat     chan<- struct{} // holds one signal: say to the others what this node knows
	Lost     chan<- struct{} // holds one signal: Redis may have lost what it knew

	MaxSkew, Grace, SweepEvery, FailoverHold time.Duration
	Log                                      *slog.Logger
}

// Lanes are a node's ways to Redis.
type Lanes struct {
	Config
	apart   bool     // on a Cluster, whose masters fail one by one
	home    *breaker // of the master that has the control record, the roster and the clock
	memory  memory
	cursors cursors
	changed chan struct{} // holds one signal: look which partition has which master now

	routes atomic.Pointer[routes]

	mu    sync.Mutex // to claim, and to change routes
	terms *Terms     // once they work
}

// New makes lanes. Begin is to be called before anything else.
func New(c Config) *Lanes {
	n := &Lanes{Config: c, apart: c.Ledger.Clustered(), changed: make(chan struct{}, 1)}
	n.cursors.all = make(map[*work.Job]*heard, c.Jobs.Len())
	n.home = &breaker{health: c.Health, master: "of the control record", apart: n.apart, others: n}
	return n
}

// may says whether this node may claim a job now, and in which definition it has it.
func (n *Lanes) may(name string) (digest string, yes bool) {
	j := n.Jobs.Named(name)
	if j == nil || n.Slots.Full() || !n.Works() || n.Shut(j.Part) || !sharding.Matches(j.Labels, n.Labels) {
		return "", false
	}
	return j.Digest, true
}

// Start starts all lanes, and what sees to them.
func (n *Lanes) Start(t Terms) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.terms = &t
	for _, l := range n.all() {
		l.start(&t)
	}
	t.Group.Go(func() { n.watchClock(t.Alive) })
	if n.apart {
		t.Group.Go(func() { n.watchRoutes(t.Alive) })
	}
}

// Claim takes a batch of claims to Redis. It does not block.
func (n *Lanes) Claim(b *work.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of(b.Part).claims <- b
}

// Sweep has a partition looked at before the period is over.
func (n *Lanes) Sweep(part int) { wait.Signal(n.of(part).sweep) }

// Hold keeps the lease of a run in a partition alive, until it is closed or lost.
func (n *Lanes) Hold(parent context.Context, part int, g locking.Grant) *locking.Lease {
	return n.of(part).keeper.Hold(parent, g)
}

// Holding is why the node claims nothing, nil when it may, if not of all partitions.
func (n *Lanes) Holding() error {
	for _, l := range n.all() {
		if l.failover.someOpen() {
			return nil
		}
	}
	return errHolding
}

// Shut says whether nothing is claimed from a partition.
func (n *Lanes) Shut(part int) bool { return n.of(part).shut(part) }

// Late is how late something of a partition counts as for the turns of nodes, that is late by so much.
func (n *Lanes) Late(part int, by time.Duration) time.Duration {
	return n.of(part).breaker.late(n.Health.late(by))
}

// Trouble is why the node claims nothing, or not everything, but for the seconds after a failover.
func (n *Lanes) Trouble() error {
	errs := []error{n.Health.Trouble(), n.trouble(), n.Clock.Usable()}
	for _, l := range n.all() {
		errs = append(errs, l.watchdog.trouble())
	}
	return errors.Join(errs...)
}

// trouble is why no job of this node is claimed, nil when some are or there is none.
func (n *Lanes) trouble() (err error) {
	for _, j := range n.Jobs.All() {
		l := n.of(j.Part)
		if !l.breaker.shut() {
			return nil
		}
		err = l.breaker.trouble()
	}
	return err
}

// unreachable says whether the masters of all lanes are.
func (n *Lanes) unreachable() bool {
	return !slices.ContainsFunc(n.all(), func(l *Lane) bool { return !l.breaker.open() })
}

// Away says whether Redis does not answer, or on a Cluster the master where nodes meet, as far as this node knows.
func (n *Lanes) Away() bool {
	return errors.Is(n.Health.Trouble(), locking.ErrUnreachable) || n.home.open()
}

// Servers say, for the roster, which masters this node has told of its runs, and which of them have these in place.
func (n *Lanes) Servers() (told, placed string) {
	var all, have []string
	for _, l := range n.all() {
		t, p := l.failover.servers()
		if t != "" {
			all = append(all, t)
		}
		if p != "" {
			have = append(have, p)
		}
	}
	return ledger.JoinFingerprints(all), ledger.JoinFingerprints(have)
}

// Seen takes up what the roster says of the masters.
func (n *Lanes) Seen(members []roster.Member, nodes []sharding.Node) {
	for _, l := range n.all() {
		l.failover.seen(members, nodes)
	}
}

// Beaten takes up whether a beat in the roster was answered.
func (n *Lanes) Beaten(err error) {
	if err != nil {
		n.home.fail(roleBeat, err)
		return
	}
	n.home.ok(roleBeat)
	if !n.apart { // what a Cluster's other masters take is not known by this one, see sweep.writtenFor
		n.Clock.wrote()
	}
}

// At asks something of a partition for a role that can do without it: ErrBreaker then.
func (n *Lanes) At(role string, part int, ask func() error) error {
	b := n.of(part).breaker
	if b.open() {
		return ErrBreaker
	}
	err := b.full(ask())
	if !n.apart || !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	b.fail(role, err)
	return ErrBreaker
}

// Unheard takes up that masters of some partitions did not answer a role.
func (n *Lanes) Unheard(role string, err error, parts []int) {
	for _, l := range n.all() {
		if slices.ContainsFunc(parts, func(p int) bool { return n.of(p) == l }) {
			l.fail(role, err)
		}
	}
}

// Part has a node that ends tell its masters of its runs that it has not told yet, or has not noticed, for FailoverHold at most.
func (n *Lanes) Part(ctx context.Context) {
	if !n.Away() {
		n.Resample(ctx)
	}
	if n.apart {
		var all sync.WaitGroup
		for _, l := range n.all() {
			all.Go(func() { l.failover.ask(ctx) })
		}
		all.Wait()
	}
	for end := time.Now().Add(n.FailoverHold); time.Now().Before(end) && !n.Away(); {
		told := true
		for _, l := range n.all() {
			told = told && (l.breaker.open() || l.failover.hasTold() && !l.failover.partly.Load())
		}
		if told || !wait.For(ctx, assertEvery/4) {
			return
		}
		for _, l := range n.all() {
			l.failover.doubt()
		}
	}
}

func (n *Lanes) lose() { wait.Signal(n.Lost) }
