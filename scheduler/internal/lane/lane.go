package lane

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// senders and settlers are how many claim and settle requests a lane has in flight.
	senders  = 4
	settlers = 2
)

// ErrBreaker is returned for calls that were not sent or not answered, because the partition's
// master is unreachable.
var ErrBreaker = errors.New("the partition's master is unreachable")

// ErrControlMaster is returned when the master of the control record does not answer, whatever the state of other masters is.
var ErrControlMaster = errors.New("the master of the control record is unreachable")

// Lane serves one master: the claims and reports of its partitions, their failover, and their sweep. Each has its own goroutines, so a
// slow, full or dead master stops its own lane only.
type Lane struct {
	*link
	check    chan struct{}    // holds one signal: check the master now
	claims   chan *work.Batch // with room for as many batches as there are slots
	early    chan struct{}    // holds one signal: sweep early
	sender   *sender
	settler  *settler
	sweep    *sweep
	watchdog *watchdog
	keeper   *locking.Keeper // of leases granted here; they stay when their partition gets another lane
	stop     context.CancelFunc
}

// Terms bound the work of lanes.
type Terms struct {
	Runner   Runner          // gets the granted runs
	Sweeping context.Context // when it ends, the sweep only looks for runs to cancel
	Claiming context.Context // when it ends, claims without an answer are given up
	Alive    context.Context // when it ends, no run is left and unrecorded reports are given up
	Group    *sync.WaitGroup // all goroutines
}

// newBreaker makes the breaker of a master.
func (n *Lanes) newBreaker(master string) *breaker {
	return &breaker{health: n.Health, master: master, clustered: n.clustered, allUnreachable: n.allUnreachable}
}

// newLink makes the link to a master, without partitions.
func (n *Lanes) newLink(m ledger.Master, check chan<- struct{}) *link {
	b := n.newBreaker(m.Addr)
	epochs := failover.NewEpochs(failover.Config{
		ID: n.ID, Name: n.Name, Ledger: n.Ledger, Clock: n.Clock, Jobs: n.Jobs, Reporter: n.reporter, Restore: n.restore,
		Beat: n.Beat, Lost: n.Lost, Routes: n.routesChanged, Hold: n.FailoverHold, SweepEvery: n.SweepEvery, Log: n.Log,
	}, m, b, check)
	return &link{addr: m.Addr, clustered: n.clustered, ledger: n.Ledger, breaker: b, epochs: epochs}
}

// newLane makes the lane of a master, without partitions.
func (n *Lanes) newLane(m ledger.Master) *Lane {
	l := &Lane{check: n.Health.check, claims: make(chan *work.Batch, n.Slots.Size()), early: make(chan struct{}, 1), stop: func() {}}
	if n.clustered {
		l.check = make(chan struct{}, 1)
	}
	l.link = n.newLink(m, l.check)
	by := claim.Claimer{ID: n.ID, Name: n.Name}
	l.sender = &sender{
		home: l.link, links: n.link, claims: l.claims, answers: n.Answers, inbox: n.Inbox, cursors: n.reporter.Cursors, clock: n.Clock, health: n.Health,
		by: by, skew: n.MaxSkew, resample: n.Resample, routes: n.routesChanged,
		grants: granter{ledger: n.Ledger, clock: n.Clock, slots: n.Slots, inbox: n.Inbox, by: by},
	}
	l.watchdog = newWatchdog(n.mayClaim, func(ctx context.Context, name string) (query.Stored, error) { return query.Job(ctx, n.Ledger, name) }, n.Log)
	l.sweep = n.newSweep(l.link, by, l.early, l.watchdog)
	l.settler = newSettler(l.link, n.link, n.Inbox, l.sweep.backfiller.ended)
	// The keeper does not log: the runner logs lost runs, and Health logs Redis.
	l.keeper = locking.NewKeeper(n, locking.KeeperConfig{
		Margin: n.MaxSkew, CallTimeout: ledger.CallTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	return l
}

// newSweep makes the sweep of a master's partitions.
func (n *Lanes) newSweep(home *link, by claim.Claimer, early chan struct{}, w *watchdog) *sweep {
	unknown := UnknownFormats{Log: n.Log}
	return &sweep{
		home: home, links: n.link, id: n.ID, clock: n.Clock, jobs: n.Jobs, slots: n.Slots, inbox: n.Inbox, runs: n.Runs, cursors: n.reporter.Cursors,
		skew: n.MaxSkew, grace: n.Grace, every: n.SweepEvery, early: early, scanner: query.NewScanner(n.Ledger), watchdog: w, unknown: unknown,
		backfiller: &backfiller{
			ledger: n.Ledger, epochs: home.epochs, clock: n.Clock, name: n.Name, jobs: n.Jobs, owns: n.Nodes.Owns, takesWork: n.TakesWork,
			lookAfter: 4 * max(n.SweepEvery, n.Grace), sweep: early, known: n.reporter.Backfills, log: n.Log,
			cancelled: make(map[string]time.Time), logged: make(map[string]time.Time),
		},
		records: &records{home: home, known: n.reporter.Backfills, log: n.Log, lacking: make(map[int]lacking)},
		unrunnable: &unrunnable{
			home: home, clock: n.Clock, by: by, nodes: n.Nodes, jobs: n.Jobs, cursors: n.reporter.Cursors, closed: n.Closed, listener: n.Listener, log: n.Log,
			noNode: make(map[string]noNode), hasNode: make(map[string]time.Time),
		},
		reaper: &reaper{
			home: home, clock: n.Clock, nodes: n.Nodes, jobs: n.Jobs, inbox: n.Inbox, listener: n.Listener, resample: n.Resample, ignore: w.ignore, log: n.Log,
			seen: make(map[string]lapsedLease), unknown: unknown,
		},
		relay: &relay{
			home: home, links: n.link, id: n.ID, grace: n.Grace, nodes: n.Nodes, jobs: n.Jobs, sweep: n.Sweep, log: n.Log,
			unheldJobs: make(map[string]unheldSince), loggedUnheld: make(map[string]time.Time), unknown: unknown,
		},
		joins: &joins{home: home, links: n.link, jobs: n.Jobs, owns: n.Nodes.Owns, takesWork: n.TakesWork},
	}
}

// start starts the lane's goroutines. When the lane ends they finish the work that they have.
func (l *Lane) start(t *Terms) {
	alive, end := context.WithCancel(t.Alive)
	l.stop = end
	for range settlers {
		t.Group.Go(func() { l.settler.run(t, alive.Done()) })
	}
	for range senders {
		t.Group.Go(func() { l.sender.run(t, alive.Done()) })
	}
	if l.clustered {
		t.Group.Go(func() { l.watch(alive) })
	}
	t.Group.Go(func() { l.sweep.run(t.Sweeping, alive) })
}

// link is the connection to one Redis master: whether the master answers, and in which epochs its partitions are.
type link struct {
	addr      string // the master's address; "" for an only server
	clustered bool   // there are other masters
	ledger    *ledger.Ledger
	breaker   *breaker
	epochs    *failover.Epochs
}

// links returns the link to a partition's current master.
type links func(part int) *link

// blocked reports whether nothing is claimed from a partition.
func (k *link) blocked(part int) bool { return k.breaker.blocks() || k.epochs.Blocks(part) }

// steadyFor is how long this node has seen Redis' clock run steadily while the partitions had their current master.
func (k *link) steadyFor(c *Clock) time.Duration {
	steady := c.steadyFor()
	if k.clustered { // otherwise the clock has it
		steady = min(steady, k.epochs.UnchangedFor())
	}
	return steady
}

// reply is the meaning of an answer for the batch that was sent.
type reply uint8

const (
	accepted     reply = iota // the request was carried out
	refused                   // Redis refuses it
	held                      // no epoch is open, or another one has begun: this request did nothing
	migrating                 // the partition's slot moves to another master: this request did nothing
	clockRefused              // this node's clock and Redis' differ
	unreachable               // there is no answer: the request may have been carried out
)

// String is the reply's name.
func (r reply) String() string {
	return [...]string{"accepted", "refused", "held", "migrating", "clockRefused", "unreachable"}[r]
}

// replyOf sorts the error of a request.
func (k *link) replyOf(err error) reply {
	switch {
	case err == nil:
		return accepted
	case errors.Is(err, failover.ErrHolding), errors.Is(err, ledger.ErrServer):
		return held
	case k.clustered && redisconn.OfSlot(err):
		return migrating
	case errors.Is(err, ledger.ErrClock):
		return clockRefused
	case errors.Is(err, locking.ErrUnreachable):
		return unreachable
	}
	return refused
}

// endRuns calls the ledger about runs of one partition that end here, in the epoch in which they are kept. It returns ErrHolding while one
// of them waits until it is restored, and ErrServer when the answer is of an epoch that is over: then the caller repeats the call. In a
// later epoch the runs were reported as going on.
func (k *link) endRuns(part int, runs []string, call func(ctx context.Context, at *ledger.Ledger) ([]*failover.Ending, error)) error {
	epoch, placed := k.epochs.Keeps(part, runs...)
	if !placed {
		return failover.ErrHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), ledger.CallTimeout)
	defer cancel()
	ends, err := call(ctx, k.ledger.At(epoch))
	if errors.Is(err, ledger.ErrServer) {
		k.epochs.Recheck()
	}
	if err != nil {
		return k.breaker.full(err)
	}
	if !k.epochs.Ended(epoch, part, ends...) {
		return ledger.ErrServer
	}
	return nil
}
