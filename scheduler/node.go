package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

const (
	// senders and carriers are how many claim and settle requests a node has in flight.
	senders  = 4
	carriers = 2
	// cancelGrace is how long a function may take to end after its context was cancelled by a drain.
	cancelGrace = 10 * time.Second
	// settleGrace is how long Redis may take, after that, to take the outcomes.
	settleGrace = 2 * time.Second
)

// Node is one process's part of the cluster: it claims ticks of the jobs in its registry, runs
// them and records how they ended. Make one with New, then call Run once.
type Node struct {
	cfg    Config
	client redis.UniversalClient
	id     string
	log    *slog.Logger
	jobs   []*job

	clock    *clock
	slots    *slots
	health   *health
	quiet    *quiet
	failover *failover
	moves    *relocation
	events   *events
	crowd    atomic.Pointer[crowd]
	cordon   atomic.Pointer[sharding.Drained] // who drained the node's name; nil when nobody did
	control  atomic.Pointer[ledger.Control]   // as the registrar last read it

	// Made by Run, once the ledger is open.
	ledger    *ledger.Ledger
	roster    *sharding.Roster
	keeper    *locking.Keeper
	settler   *settler
	runner    *runner
	members   *members
	registrar *registrar
	engine    *engine

	values     context.Context // of Run's context, for the jobs' functions
	started    atomic.Bool
	registered atomic.Bool   // once
	leaving    atomic.Bool   // it was told to end; it still claims until it has handed over
	draining   atomic.Bool   // it claims nothing more
	beatNow    chan struct{} // holds one signal: beat before the period is over
	sweepNow   chan struct{} // holds one signal: sweep before the period is over
}

// New makes a node from a client that the caller keeps, a registry and settings. It checks all
// three and talks to nobody. Jobs added to the registry later are not seen.
func New(client redis.UniversalClient, reg *jobs.Registry, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if reg == nil {
		return nil, errors.New("scheduler: no registry; make one with jobs.NewRegistry and add jobs to it")
	}
	if err := errors.Join(redisconn.Check(client), cfg.validate(reg)); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n := &Node{
		cfg: cfg, client: client, id: cfg.NewID(), log: cfg.Logger.With("node", cfg.Name),
		clock: newClock(cfg.Wall, cfg.MaxStep), slots: newSlots(cfg.MaxRunning),
		beatNow: make(chan struct{}, 1), sweepNow: make(chan struct{}, 1),
	}
	n.failover = newFailover(n)
	n.moves = newRelocation(n)
	n.health = &health{log: n.log, over: n.failover.doubt, shut: n.moves.shut, unanswered: n.findMasters}
	n.quiet = newQuiet(n.health)
	n.events = newEvents(cfg.Hooks, cfg.Name, n.clock, n.log)
	upstream := make(map[string]bool)
	for i, j := range reg.All() {
		schedule, err := j.ParsedSchedule()
		if err != nil {
			return nil, fmt.Errorf("scheduler: job %s: %w", j.Name, err)
		}
		def := j.Definition()
		//guard:generation-apart P7 the same job of another generation has another definition
		def.Generation = cfg.Generation
		n.jobs = append(n.jobs, &job{Job: j, schedule: schedule, def: def, digest: def.Digest(), index: i, place: -1})
		upstream[j.After] = true
	}
	for _, j := range n.jobs {
		j.followed = upstream[j.Name]
	}
	return n, nil
}

// ID is the node's id, made by New with Config.NewID.
func (n *Node) ID() string { return n.id }

// Name is the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Ready is nil when the node has registered its jobs, Redis answers, its clock can be trusted
// and it is not draining; else it says what is missing. A node that an operator has drained is not
// ready either: ready is who takes work. It is well all the same, and nobody should restart it.
func (n *Node) Ready() error {
	switch {
	case n.leaving.Load():
		return errors.New("draining")
	case n.moves.trouble() != nil:
		return n.moves.trouble()
	case !n.registered.Load():
		return errors.Join(errors.New("not registered yet"), n.health.trouble())
	}
	return errors.Join(n.cordonWords(), n.claimTrouble(), n.failover.holding())
}

// Run joins the cluster and works until ctx ends. Then it tells the others, and until they know (two
// seconds at most, and half of DrainTimeout) it claims what it goes first for and nothing else; then
// nothing more. It waits for what runs (DrainTimeout from the end of ctx, then the runs' contexts end
// with cause ErrDraining), leaves the roster and returns nil: some 20 s after DrainTimeout at the latest, with an error when functions
// had not ended 10 s after their contexts. Jobs' functions see the values of ctx. It returns an error wrapping
// locking.ErrUnreachable when Redis cannot be reached at the start and WaitForRedis is not set; once
// it runs it outlives any outage of Redis. With Config.Next it returns ErrMoved, after the same steps, when the namespace
// is open there; nothing is handed over then, for nobody claims here any more. It may be called once.
func (n *Node) Run(ctx context.Context) error {
	if n.started.Swap(true) {
		return errors.New("scheduler: Run was called before; make another node with New")
	}
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("scheduler: node %s: %w", n.cfg.Name, err)
	}
	asked := ctx
	ctx, depart := context.WithCancel(ctx) // also when the namespace has moved
	defer depart()
	// The roles that keep what runs alive outlast ctx; stop ends them when nothing runs any more.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	claiming, stopClaiming := context.WithCancel(alive) // outlasts ctx by the hand-over
	defer stopClaiming()
	var taking, keeping, settling sync.WaitGroup
	settling.Go(n.settler.run)
	for range carriers {
		settling.Go(func() { n.settler.carry(alive, &settling) })
	}
	for range senders {
		taking.Go(func() { sender{n, &taking}.run(claiming) })
	}
	taking.Go(func() { n.engine.run(claiming) })
	taking.Go(func() { n.registrar.run(ctx) })
	taking.Go(func() { n.moves.run(ctx, depart) })
	keeping.Go(func() { n.watchClock(alive) })
	keeping.Go(func() { n.members.run(alive) })
	keeping.Go(func() { n.events.run(alive) })
	keeping.Go(func() { newSweep(n).run(ctx, alive) })

	<-ctx.Done()
	told := time.Now()
	n.drain()
	stopClaiming()
	left := n.cfg.DrainTimeout - time.Since(told)
	taking.Wait()
	err := n.runner.drain(left)
	n.failover.part(alive)
	close(n.settler.stop)
	stop()
	keeping.Wait()
	settling.Wait()
	n.leave(ctx)
	n.log.Info("node stopped")
	if n.moves.moved.Load() && asked.Err() == nil {
		err = errors.Join(err, n.moves.gone())
	}
	return err
}

// leave takes the node out of the roster, so that the others take over at once.
func (n *Node) leave(ctx context.Context) {
	if err := n.members.leave(context.WithoutCancel(ctx)); err != nil {
		n.log.Warn("the node could not leave the roster; it will be dropped from it by itself", "error", err, "after", rosterTTL)
	}
}

// drain makes it known that the node ends, and hands over. From its return on the node takes nothing more.
func (n *Node) drain() {
	n.leaving.Store(true)
	n.log.Info("draining: what the node goes first for is handed over, nothing else is claimed", "running", n.slots.used(), "timeout", n.cfg.DrainTimeout)
	signal(n.beatNow)
	if !n.away() && !n.moves.moved.Load() {
		within(n.members.handing.over, min(handOver, n.cfg.DrainTimeout/2)) // what starts last has as long
	}
	n.draining.Store(true)
}

// open opens the ledger, makes the roles and enters the roster, waiting for Redis if it may.
func (n *Node) open(ctx context.Context) error {
	n.values = context.WithoutCancel(ctx)
	for try := 0; ; try++ {
		err := n.openOnce(ctx)
		if err == nil {
			n.health.ok("open")
			return nil
		}
		if n.members != nil {
			n.leave(ctx) // the beat may have arrived though its answer did not
		}
		if !n.cfg.WaitForRedis || !errors.Is(err, locking.ErrUnreachable) || ctx.Err() != nil {
			return err
		}
		n.health.fail("open", err)
		pause(ctx, backoff(n.id, try))
	}
}

func (n *Node) openOnce(ctx context.Context) error {
	if err := n.moves.before(ctx); err != nil {
		return err
	}
	redisconn.Meet(ctx, n.client)
	call, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l, err := ledger.Open(call, n.client, n.cfg.ledger())
	if err != nil {
		return err
	}
	if n.ledger, err = n.confirming(call, l); err != nil {
		return err
	}
	if err := n.sampleClock(call); err != nil {
		return err
	}
	n.failover.begin(n.clock.server())
	n.makeRoles()
	if err := n.members.join(call); err != nil {
		return err
	}
	n.warnEviction(ctx)
	n.warnUnnamed(ctx)
	return nil
}

// confirming is the ledger for claims that wait for replicas as Config.Confirm wants it.
func (n *Node) confirming(ctx context.Context, l *ledger.Ledger) (_ *ledger.Ledger, err error) {
	replicas := n.cfg.Confirm
	if replicas == ConfirmMajority {
		if replicas, err = redisconn.Majority(ctx, n.client); err != nil {
			return nil, fmt.Errorf("confirm: %w", err)
		}
		n.log.Info("claims are confirmed by replicas", "replicas", replicas)
	}
	return l.Confirming(replicas), nil
}

func (n *Node) makeRoles() {
	for _, j := range n.jobs {
		j.part = n.ledger.Partition(j.Name)
	}
	n.quiet.parts, n.quiet.apart, n.quiet.own = n.ledger.Partitions(), n.ledger.Clustered(), nil
	for _, j := range n.jobs {
		n.quiet.own = append(n.quiet.own, j.part)
	}
	slices.Sort(n.quiet.own)
	n.quiet.own = slices.Compact(n.quiet.own)
	n.roster = sharding.NewRoster(n.client, sharding.RosterConfig{Namespace: n.cfg.Namespace, TTL: rosterTTL})
	// The keeper's own log is not used: the runner says what became of a run, health what of Redis.
	n.keeper = locking.NewKeeper(renewer{n}, locking.KeeperConfig{
		Margin: n.cfg.MaxSkew, CallTimeout: callTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	n.runner = newRunner(n)
	n.members = newMembers(n)
	n.registrar = newRegistrar(n)
	n.engine = newEngine(n.clock, n.slots, n.jobs, n.cfg.NewID, n.log)
	n.engine.expelled = n.moves.expelled
	n.engine.mayTake = n.mayTake
	n.engine.mayShard = n.mayShard
	n.engine.holding, n.engine.by = n.failover.holding, ledger.Claimer{ID: n.id, Name: n.cfg.Name}
	n.engine.shut = func(part int) bool { return n.quiet.shut(part) || n.failover.holds(part) }
	n.engine.events = n.events
	n.engine.relay = n.sweepNow
	n.settler = newSettler(n.ledger, n.failover, n.quiet, n.engine)
	n.engine.granted = func(g grant) { n.runner.start(g, g.back != "") }
}

// explain gives errors of the roster, which wraps them as they came, their class.
func (n *Node) explain(op string, err error) error { return redisconn.Explain(op, err) }
