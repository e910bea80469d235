// Package lane is everything that a node has to do with its Redis while it works: the estimate of Redis' clock, what has to be told to a
// server that may have lost writes, the batches of claims, renewals and ends of runs, the sweep, and what of all that does
// not answer.
package lane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// senders and carriers are how many claim and settle requests a node has in flight.
	senders  = 4
	carriers = 2
)

// TurnsMax bounds the wait of the last in a large cluster, in turns, for promise P6.
const TurnsMax = 10

// Nodes are the nodes of the cluster, as this one knows them.
type Nodes interface {
	Living() []sharding.Node
	// Knows says whether any living node that may claim holds a job of that name, in whatever definition.
	Knows(job string) bool
	// Digests are the definitions in which those nodes hold a job; nil when what one of them holds is not known.
	Digests(job string) []string
}

// Runs are the runs that are here.
type Runs interface {
	Grants() []work.Grant
	// Cancelled ends a run that somebody wants ended, if it is here.
	Cancelled(c ledger.Cancel)
}

// Listener is told of runs of other nodes that were ended.
type Listener interface{ Abandoned(l ledger.Lease) }

// Config is what a lane needs.
type Config struct {
	Ledger   *ledger.Ledger
	ID, Name string // the node's
	Clock    *Clock
	Health   *Health
	Jobs     *work.Jobs
	Slots    *agenda.Slots
	Inbox    *agenda.Inbox
	Claims   <-chan *work.Batch // from the agenda
	Answers  chan<- *work.Batch // and back
	Nodes    Nodes
	Runs     Runs
	Listener Listener
	Labels   map[string]string
	Leaving  func() bool     // the node was told to end
	Works    func() bool     // it takes work: nobody has drained its name, and no move has closed the namespace
	Beat     chan<- struct{} // holds one signal: say to the others what this node knows
	Sweep    chan struct{}   // holds one signal: sweep before the period is over
	Lost     chan<- struct{} // holds one signal: Redis may have lost what it knew

	MaxSkew, Grace, SweepEvery, FailoverHold time.Duration
	Log                                      *slog.Logger
}

// Lane is a node's way to Redis.
type Lane struct {
	Config
	failover *failover
	quiet    *quiet
	settler  *settler
	keeper   *locking.Keeper
	watchdog *watchdog
}

// New makes a lane. Begin is to be called before anything else.
func New(c Config) *Lane {
	n := &Lane{Config: c}
	n.failover = newFailover(n)
	n.quiet = newQuiet(c.Health, c.Ledger.Partitions(), c.Ledger.Clustered(), partsOf(c.Jobs))
	n.watchdog = newWatchdog(n.may, c.Ledger.Job, c.Log)
	n.settler = newSettler(c.Ledger, n.failover, n.quiet, c.Inbox)
	// The keeper's own log is not used: the runner says what became of a run, health what of Redis.
	n.keeper = locking.NewKeeper(renewer{n}, locking.KeeperConfig{
		Margin: c.MaxSkew, CallTimeout: CallTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	return n
}

// may says whether this node may claim a job now, and in which definition it has it.
func (n *Lane) may(name string) (digest string, yes bool) {
	j := n.Jobs.Named(name)
	if j == nil || n.Slots.Full() || !n.Works() || n.Shut(j.Part) || !sharding.Matches(j.Labels, n.Labels) {
		return "", false
	}
	return j.Digest, true
}

// partsOf are the partitions that have jobs of this node.
func partsOf(all *work.Jobs) (parts []int) {
	for _, j := range all.All {
		parts = append(parts, j.Part)
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// Begin reads the clock for the first time, and trusts the server that it is.
func (n *Lane) Begin(ctx context.Context) error {
	if err := n.sampleClock(ctx); err != nil {
		return err
	}
	n.failover.begin(n.Clock.Server())
	return nil
}

// Send starts what takes claims to Redis, and what is granted to the runner, until the agenda has ended; when draining ends, claims whose outcome is unknown are given up.
func (n *Lane) Send(draining context.Context, runner Runner, g *sync.WaitGroup) {
	for range senders {
		g.Go(func() { sender{n, g, runner}.run(draining) })
	}
}

// SettleAll starts what takes ends of runs to Redis, until Close; what it has not taken when giveUp ends is given up.
func (n *Lane) SettleAll(giveUp context.Context, g *sync.WaitGroup) {
	for range carriers {
		g.Go(func() { n.settler.carry(giveUp, g) })
	}
}

// Close ends SettleAll. No run is left then.
func (n *Lane) Close() { close(n.settler.stop) }

// SweepAll sweeps until ctx ends, and until alive does it looks for runs to cancel.
func (n *Lane) SweepAll(ctx, alive context.Context) { newSweep(n).run(ctx, alive) }

// Keeper keeps leases of runs alive.
func (n *Lane) Keeper() *locking.Keeper { return n.keeper }

// Holding is why the node claims nothing, nil when it may, if not of all partitions.
func (n *Lane) Holding() error { return n.failover.holding() }

// Shut says whether nothing is claimed from a partition.
func (n *Lane) Shut(part int) bool { return n.quiet.shut(part) || n.failover.holds(part) }

// Late is how late something of a partition counts as for the turns of nodes, that is late by so much.
func (n *Lane) Late(part int, by time.Duration) time.Duration {
	return n.quiet.late(part, n.Health.late(by))
}

// Trouble is why the node claims nothing, or not everything, but for the seconds after a failover.
func (n *Lane) Trouble() error {
	return errors.Join(n.Health.Trouble(), n.quiet.trouble(), n.Clock.Usable(), n.watchdog.trouble())
}

// Away says whether Redis does not answer, or on a Cluster the master where nodes meet, as far as this node knows.
func (n *Lane) Away() bool {
	return errors.Is(n.Health.Trouble(), locking.ErrUnreachable) || n.quiet.of(home)
}

// Servers are fingerprints of the server that this node's runs were told to, and of the one that has them all in place.
func (n *Lane) Servers() (told, placed string) {
	told, placed = n.failover.servers()
	return ledger.Fingerprint(told), ledger.Fingerprint(placed)
}

// Seen takes up what the roster says of the server.
func (n *Lane) Seen(members []sharding.Member, nodes []sharding.Node) {
	n.failover.seen(members, nodes)
}

// Beaten takes up whether a beat in the roster was answered.
func (n *Lane) Beaten(err error) {
	if err != nil {
		n.quiet.fail(roleBeat, err, home)
		return
	}
	n.quiet.ok(roleBeat, home)
	if !n.quiet.apart { // what a Cluster's other masters take is not known by this one, see sweep.writtenFor
		n.Clock.wrote()
	}
}

// At asks something of a partition for a role that can do without it: ErrQuiet then.
func (n *Lane) At(role string, part int, ask func() error) error {
	if n.quiet.of(part) {
		return ErrQuiet
	}
	return n.quiet.spare(role, ask(), part)
}

// Unheard takes up that masters of some partitions did not answer a role.
func (n *Lane) Unheard(role string, err error, parts []int) { n.quiet.fail(role, err, parts...) }

// Part has a node that ends tell a server of its runs that it has not told yet.
func (n *Lane) Part(ctx context.Context) { n.failover.part(ctx) }

func (n *Lane) lose() { wait.Signal(n.Lost) }
