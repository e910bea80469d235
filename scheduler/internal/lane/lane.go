package lane

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// senders and carriers are how many claim and settle requests a lane has in flight.
	senders  = 4
	carriers = 2
)

// Lane serves one master. It has a breaker, the failover, the claims and reports of its partitions,
// and their sweep. Each has its own goroutines, so a slow, full or dead master stops its own lane
// only.
type Lane struct {
	*Config
	lanes     *Lanes
	addr      string // the master's address; "" for an only server
	clustered bool   // there are other masters
	breaker   *breaker
	epochs    *epochs
	settler   *settler
	feeder    *feeder
	watchdog  *watchdog
	keeper    *locking.Keeper  // of leases granted here; they stay when their partition gets another lane
	claims    chan *work.Batch // with room for as many batches as there are slots
	sweep     chan struct{}    // holds one signal: sweep early
	noNodes   atomic.Int64     // how many overdue jobs the last sweep knew that no living node can run
	stop      context.CancelFunc
}

// newLane makes the lane of a master, without partitions.
func newLane(n *Lanes, m ledger.Master) *Lane {
	l := &Lane{
		Config: &n.Config, lanes: n, addr: m.Addr, clustered: n.clustered,
		breaker: &breaker{health: n.Health, master: m.Addr, clustered: n.clustered, others: n},
		claims:  make(chan *work.Batch, n.Slots.Size()), sweep: make(chan struct{}, 1), stop: func() {},
	}
	l.epochs = newEpochs(l, m)
	l.settler, l.feeder = newSettler(l), newFeeder(l)
	l.watchdog = newWatchdog(n.mayClaim, n.Ledger.Job, n.Log)
	// The keeper does not log: the runner logs lost runs, and Health logs Redis.
	l.keeper = locking.NewKeeper(n, locking.KeeperConfig{
		Margin: n.MaxSkew, CallTimeout: CallTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	return l
}

// start starts the lane's goroutines. When the lane ends they finish the work that they have.
func (l *Lane) start(t *Terms) {
	alive, end := context.WithCancel(t.Alive)
	l.stop = end
	for range carriers {
		t.Group.Go(func() { l.settler.carry(t, alive.Done()) })
	}
	for range senders {
		t.Group.Go(func() { sender{l: l, terms: t}.run(alive.Done()) })
	}
	if l.clustered {
		t.Group.Go(func() { l.watch(alive) })
	}
	t.Group.Go(func() { newSweep(l).run(t.Sweeping, alive) })
}

// Terms say how long lanes work.
type Terms struct {
	Runner   Runner          // gets the granted runs
	Sweeping context.Context // when it ends, the sweep only looks for runs to cancel
	Claiming context.Context // when it ends, claims without an answer are given up
	Alive    context.Context // when it ends, no run is left and unrecorded reports are given up
	Group    *sync.WaitGroup // all goroutines
}

// blocked reports whether nothing is claimed from one of the lane's partitions.
func (l *Lane) blocked(part int) bool { return l.breaker.blocks() || l.epochs.holds(part) }

// fail notes that a role's call failed.
func (l *Lane) fail(role string, err error) { l.breaker.fail(role, err) }

// ErrBreaker is returned for calls that were not sent or not answered, because the partition's
// master is unreachable.
var ErrBreaker = errors.New("the partition's master is unreachable")

// lost reports whether a partition has another lane now.
func (l *Lane) lost(part int) bool { return l.lanes.of(part) != l }
