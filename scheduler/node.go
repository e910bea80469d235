package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/runner"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrDraining is the cause of a run's context when the node was told to stop and the drain time
// is over.
var ErrDraining = runner.ErrDraining

// ErrMoved is returned by Run when the namespace has moved to the Redis of Config.Next and is open there. Make another
// node with New on that client and run it.
var ErrMoved = cluster.ErrMoved

// Node is one process's part of the cluster: it claims ticks of the jobs in its registry, runs
// them and records how they ended. Make one with New, then call Run once.
type Node struct {
	cfg    Config
	client redis.UniversalClient
	id     string
	log    *slog.Logger
	jobs   *work.Jobs

	clock    *lane.Clock
	health   *lane.Health
	moves    *cluster.Moves
	standing *cluster.NodeState
	events   *events
	changing sync.Mutex            // which jobs there are, and roles
	roles    atomic.Pointer[roles] // once the ledger is open
	started  atomic.Bool
}

// New makes a node from a client that the caller keeps, a registry and settings. It checks all
// three and talks to nobody. Jobs added to the registry later are not seen; Node.Add adds some.
func New(client redis.UniversalClient, reg *jobs.Registry, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if reg == nil {
		return nil, errors.New("scheduler: no registry; make one with jobs.NewRegistry and add jobs to it")
	}
	if err := errors.Join(redisconn.Check(client), cfg.validate(reg)); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n := &Node{
		cfg: cfg, client: client, id: cfg.seam.NewID(), log: cfg.Logger.With("node", cfg.Name),
		clock: lane.NewClock(cfg.seam.Wall, cfg.MaxStep), standing: &cluster.NodeState{},
	}
	all, err := jobsOf(reg.All(), cfg)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n.jobs = work.NewJobs(all)
	n.moves = cluster.NewMoves(cluster.MovesConfig{
		Client: client, Next: cfg.Next, Namespace: cfg.Namespace, Name: cfg.Name, Jobs: n.jobs, Log: n.log,
	})
	n.health = lane.NewHealth(client, n.moves.NoteClosed, n.log)
	n.events = newEvents(cfg.Hooks, cfg.Name, n.clock, n.log)
	return n, nil
}

// ID is the node's id, made by New.
func (n *Node) ID() string { return n.id }

// Name is the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Ready is nil when the node has registered its jobs, Redis answers, its clock can be trusted
// and it is not draining; else it says what is missing. A node that an operator has drained is not
// ready either: ready is who takes work. It is well all the same, and nobody should restart it.
func (n *Node) Ready() error {
	r := n.roles.Load()
	switch {
	case n.standing.Stopping.Load():
		return errors.New("draining")
	case n.moves.Err() != nil:
		return n.moves.Err()
	case r == nil || !n.standing.Registered.Load():
		return errors.Join(errors.New("not registered yet"), n.health.Err())
	}
	return errors.Join(r.cluster.DrainReason(), r.lanes.Err(), r.lanes.Holding())
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
	r, err := n.open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end before it had begun
		}
		return fmt.Errorf("scheduler: node %s: %w", n.cfg.Name, err)
	}
	return r.run(ctx)
}
