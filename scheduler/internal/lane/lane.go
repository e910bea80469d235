package lane

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// senders and carriers are how many claim and settle requests a lane has in flight.
	senders  = 4
	carriers = 2
)

// Lane is everything that a node has to do with one master: its breaker, what it has to be told after a failover, the claims and ends of runs
// of its partitions and the sweep of them. Each has goroutines of its own, so a master that is slow, full or gone stops its own lane
// and no other.
type Lane struct {
	*Config
	lanes    *Lanes
	addr     string // the master's; "" for an only server
	apart    bool   // there are others
	breaker  *breaker
	failover *failover
	settler  *settler
	watchdog *watchdog
	keeper   *locking.Keeper  // of leases that were granted here; a partition that comes to another lane leaves its leases
	claims   chan *work.Batch // with room for as many as there are slots
	sweep    chan struct{}    // holds one signal: sweep before the period is over
	end      context.CancelFunc
}

// newLane makes the lane of a master. It has no partitions yet.
func newLane(n *Lanes, m ledger.Master) *Lane {
	l := &Lane{
		Config: &n.Config, lanes: n, addr: m.Addr, apart: n.apart,
		breaker: &breaker{health: n.Health, master: m.Addr, apart: n.apart, others: n},
		claims:  make(chan *work.Batch, n.Slots.Size()), sweep: make(chan struct{}, 1), end: func() {},
	}
	l.failover = newFailover(l, m)
	l.settler = newSettler(l)
	l.watchdog = newWatchdog(n.may, n.Ledger.Job, n.Log)
	// The keeper's own log is not used: the runner says what became of a run, health what of Redis.
	l.keeper = locking.NewKeeper(n, locking.KeeperConfig{
		Margin: n.MaxSkew, CallTimeout: CallTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	return l
}

// start starts the lane's goroutines. They end when the lane does, with what it has been given by then.
func (l *Lane) start(t *Terms) {
	alive, end := context.WithCancel(t.Alive)
	l.end = end
	for range carriers {
		t.Group.Go(func() { l.settler.carry(t, alive.Done()) })
	}
	for range senders {
		t.Group.Go(func() { sender{l: l, terms: t}.run(alive.Done()) })
	}
	if l.apart {
		t.Group.Go(func() { l.watch(alive) })
	}
	t.Group.Go(func() { newSweep(l).run(t.Sweeping, alive) })
}

// Terms are for how long lanes work.
type Terms struct {
	Runner   Runner          // of what is granted
	Sweeping context.Context // until it ends, the sweep looks for what is late
	Claiming context.Context // when it ends, claims whose outcome is unknown are given up
	Alive    context.Context // when it ends, everything does: no run is left, and ends that are not recorded at once are given up
	Group    *sync.WaitGroup // of all goroutines
}

// shut says whether nothing is claimed from one of the lane's partitions.
func (l *Lane) shut(part int) bool { return l.breaker.shut() || l.failover.holds(part) }

// fail takes up that a role's call failed.
func (l *Lane) fail(role string, err error) { l.breaker.fail(role, err) }

// ErrBreaker is the answer to what is not asked, or was not answered, because the master of the partition is unreachable.
var ErrBreaker = errors.New("the partition's master is unreachable")

// moved says whether a partition has another lane now.
func (l *Lane) moved(part int) bool { return l.lanes.of(part) != l }
