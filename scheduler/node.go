package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/runner"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrDraining is the cause with which a run's context ends when the node stops and the drain
// timeout is over.
var ErrDraining = runner.ErrDraining

// ErrMoved is returned by Run when the namespace has moved to the Redis of Config.Next and is open
// there. Make a new node with New on that client and run it.
var ErrMoved = cluster.ErrMoved

// Node is one process's part of the cluster: it claims ticks of its jobs, runs them and records
// their outcomes. Make one with New, then call Run once.
type Node struct {
	parts
	// handlers are the functions of jobs that are stored at run time.
	handlers map[string]jobs.Func
	shapes   map[string]string // of the payloads of these handlers

	changing     sync.Mutex            // guards changes of the jobs and of roles
	roles        atomic.Pointer[roles] // set once the ledger is open
	incarnations atomic.Int64          // how many ids of incarnations this node has made
	started      atomic.Bool
	followed     atomic.Bool // the stored jobs have been read
	caughtUp     atomic.Bool // and registered
}

// New makes a node from a client that the caller keeps, a registry and settings. It checks all
// three and sends nothing. The registry takes no further jobs and handlers then: see Node.Add.
func New(client redis.UniversalClient, reg *jobs.Registry, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if reg == nil {
		return nil, errors.New("scheduler: no registry; make one with jobs.NewRegistry and add jobs to it")
	}
	if err := errors.Join(redisconn.Check(client), cfg.validate(reg)); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n := &Node{parts: parts{
		cfg: cfg, client: client, id: cfg.seam.NewID(), log: cfg.Logger.With("node", cfg.Name),
		clock: lane.NewClock(cfg.seam.Wall, cfg.MaxStep), state: &cluster.NodeState{},
	}}
	all, err := jobsOf(reg.All(), cfg)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n.jobs, n.handlers, n.shapes = work.NewJobs(all, cfg.Revision), make(map[string]jobs.Func), make(map[string]string)
	for _, name := range reg.Handlers() {
		n.handlers[name], _ = reg.Handler(name)
		n.shapes[name] = reg.PayloadShape(name)
	}
	n.moves = cluster.NewMoves(cluster.MovesConfig{
		Client: client, Next: cfg.Next, Namespace: cfg.Namespace, Name: cfg.Name, Jobs: n.jobs, Log: n.log,
	})
	n.health = lane.NewHealth(client, cfg.Namespace, n.moves.NoteClosed, n.log)
	n.events = newEvents(cfg.Hooks, cfg.Name, n.clock, n.log)
	reg.Freeze("node " + cfg.Name)
	return n, nil
}

// ID is the node's id. New makes it.
func (n *Node) ID() string { return n.id }

// Name is the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Ready returns nil when the node has registered its jobs, stored ones too, Redis answers, its
// clock can be trusted and the node does not drain; otherwise an error that names the cause. A node
// that an operator has drained is not ready, because it takes no work; it is healthy, and needs no
// restart.
func (n *Node) Ready() error {
	r := n.roles.Load()
	switch {
	case n.state.Stopping.Load():
		return errors.New("draining")
	case n.moves.Err() != nil:
		return n.moves.Err()
	case r == nil || !n.state.Registered.Load():
		return errors.Join(errors.New("not registered yet"), n.health.Err())
	case len(n.handlers) > 0 && !n.hasStored(): // without handlers it has none
		return errors.Join(errors.New("stored jobs are not registered yet"), n.health.Err())
	}
	return errors.Join(r.cluster.DrainReason(), r.lanes.Err(), r.lanes.Holding())
}

// hasStored reports whether the jobs have been registered that were stored when the node started.
func (n *Node) hasStored() bool {
	if n.followed.Load() && n.state.Tried.Load() >= int64(n.jobs.Len()) {
		n.caughtUp.Store(true)
	}
	return n.caughtUp.Load()
}

// Registered reports whether the node has joined: the jobs of its program are registered in Redis.
// It stays true through outages, drains and the stop. Ready reports whether the node can work now.
func (n *Node) Registered() bool { return n.state.Registered.Load() }

// Run joins the cluster and works until ctx ends. Then it hands over: until the other nodes know,
// for two seconds and half of DrainTimeout at most, it claims only the jobs that it owns. After
// that it claims nothing and waits for its runs. DrainTimeout after the end of ctx it cancels the
// rest with cause ErrDraining. It leaves the roster and returns nil, or an error when functions did
// not return within 10 s of being cancelled; at the latest some 20 s after DrainTimeout.
//
// The jobs' functions see the values of ctx. Run returns an error wrapping locking.ErrUnreachable
// when Redis cannot be reached at the start and WaitForRedis is not set; later it survives any
// outage. With Config.Next it returns ErrMoved, after the same steps but the handover, when the
// namespace is open there. Run may be called once.
func (n *Node) Run(ctx context.Context) error {
	if n.started.Swap(true) {
		return errors.New("scheduler: Run was called before; make another node with New")
	}
	r, err := n.open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before it had begun
		}
		return fmt.Errorf("scheduler: node %s: %w", n.cfg.Name, err)
	}
	if len(n.handlers) == 0 {
		return r.run(ctx, nil)
	}
	return r.run(ctx, newFollower(followerConfig{
		cfg: n.cfg, ledger: r.ledger, jobs: n.jobs, handlers: n.handlers, shapes: n.shapes, clock: n.clock, health: n.health, log: n.log,
		changing: &n.changing, change: n.change, followed: &n.followed,
	}).run)
}

// open opens the ledger, makes the roles and joins the roster. With WaitForRedis it waits for
// Redis.
func (n *Node) open(ctx context.Context) (*roles, error) {
	for try := 0; ; try++ {
		r, err := n.openOnce(ctx)
		if err == nil {
			n.health.OK("open")
			return r, nil
		}
		err = redisconn.Explain(n.client, n.cfg.Namespace, err)
		if r != nil {
			r.cluster.Leave(ctx) // the record may have arrived although its answer did not
		}
		if !n.cfg.WaitForRedis || !errors.Is(err, locking.ErrUnreachable) || ctx.Err() != nil {
			return nil, err
		}
		n.health.Fail("open", err)
		wait.For(ctx, wait.Backoff(n.id, try))
	}
}

// openOnce makes the roles for the current jobs. Jobs that are added later are added to the roles.
func (n *Node) openOnce(ctx context.Context) (*roles, error) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if err := n.moves.CheckStart(ctx); err != nil {
		return nil, err
	}
	redisconn.LoadTopology(ctx, n.client)
	call, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l, err := n.openLedger(call, func() string { return fmt.Sprint(n.id, ".", n.incarnations.Add(1)) })
	if err != nil {
		return nil, err
	}
	r := newRoles(context.WithoutCancel(ctx), n.parts, l)
	if err := r.lanes.Begin(call); err != nil {
		return nil, err
	}
	if err := r.cluster.Join(call); err != nil {
		return r, err
	}
	n.warnEviction(ctx)
	n.warnUnnamed(ctx)
	n.roles.Store(r)
	return r, nil
}

// change adds and removes jobs; other roles see both at once. The agenda is the first role to learn
// of an added job and the last to learn of a removed job.
func (n *Node) change(in, out []*work.Job, revision string) {
	r := n.roles.Load()
	if r == nil {
		n.jobs.Change(in, out, revision)
		return
	}
	defer func() {
		replaced := make(map[string]bool, len(out))
		for _, j := range out {
			replaced[j.Name] = true
		}
		changed, stored := countOf(in, func(j *work.Job) bool { return replaced[j.Name] }), countOf(n.jobs.All(), isStored)
		n.log.Info("the node's jobs have changed", "added", len(in)-changed, "changed", changed, "removed", len(out)-changed, "jobs", n.jobs.Len(), "stored", stored, "revision", revision)
	}()
	for _, j := range in {
		j.Part = r.ledger.Partition(j.Name)
	}
	if len(in) > 0 {
		r.inbox.Send(agenda.Changed{Added: in})
	}
	if n.jobs.Change(in, out, revision); len(out) > 0 {
		r.inbox.Send(agenda.Changed{Removed: out})
	}
	r.cluster.Changed()
}

func countOf(list []*work.Job, is func(*work.Job) bool) (n int) {
	for _, j := range list {
		if is(j) {
			n++
		}
	}
	return n
}
