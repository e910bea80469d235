package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/internal/admission"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/runner"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// parts are what a node has before it runs, and its roles use.
type parts struct {
	cfg    Config
	client redis.UniversalClient
	id     string
	log    *slog.Logger
	jobs   *work.Jobs
	clock  *lane.Clock
	health *lane.Health
	moves  *cluster.Moves
	state  *cluster.NodeState
	events *events
}

// roles are the parts of a running node. Each gets its dependencies from its constructor.
//
//	agenda ──claims──► lane ──grants──► runner ──reports──► lane ──recorded──► agenda
//	  ▲                                                                         │
//	  └── from the lanes' sweeps and the cluster: other work, and whose turn it is ┘
type roles struct {
	parts
	slots   *agenda.Slots
	lanes   *lane.Lanes
	runner  *runner.Runner
	cluster *cluster.Cluster
	agenda  *agenda.Agenda
	ledger  *ledger.Ledger
	inbox   *agenda.Inbox
	limits  *locking.Locker // permits of groups of jobs
}

// newRoles makes all roles; none of them is running yet. The jobs' functions see values.
func newRoles(values context.Context, n parts, l *ledger.Ledger) *roles {
	for _, j := range n.jobs.All() {
		j.Part = l.Partition(j.Name)
	}
	r, c := &roles{parts: n, ledger: l, slots: agenda.NewSlots(n.cfg.MaxRunning)}, n.cfg
	closed := func() bool { return n.moves.Err() != nil }
	inbox, view, live := agenda.NewInbox(r.slots), &cluster.LatestView{}, &runner.ActiveRuns{}
	r.inbox = inbox
	answers, beat, lost := make(chan *work.Batch), make(chan struct{}, 1), make(chan struct{}, 1)
	record := cluster.NewControlRecord(l, n.moves, n.state, c.Generation)
	r.lanes = lane.New(lane.Config{
		Ledger: l, ID: n.id, Name: c.Name, Clock: n.clock, Health: n.health, Jobs: n.jobs, Slots: r.slots, Inbox: inbox,
		Answers: answers, Nodes: view, Runs: live, Listener: n.events, Labels: c.Labels, Stopping: n.state.Stopping.Load,
		TakesWork: func() bool { return n.state.Drain.Load() == nil && !closed() }, Closed: closed,
		Beat: beat, Lost: lost, Restore: record.RestoreParts,
		MaxSkew: c.MaxSkew, Grace: c.Grace, SweepEvery: c.SweepEvery, FailoverHold: c.FailoverHold, Log: n.log,
	})
	r.limits = redislock.New(n.client, redislock.Config{Namespace: c.Namespace, Margin: c.MaxSkew, Logger: n.log})
	r.runner = runner.New(runner.Config{
		Node: c.Name, Values: values, Now: n.clock.Now, Past: n.clock.Past, Usable: n.clock.Usable, Active: live, Redis: r.lanes, Listener: n.events, Log: n.log, Machine: r.slots,
		Entry: admission.New(admission.Config{Node: c.Name, Limits: r.limits, Guards: c.Guards, Log: n.log}),
	})
	r.cluster = cluster.New(cluster.Config{
		ID: n.id, Name: c.Name, Namespace: c.Namespace, Version: c.Version, Generation: c.Generation,
		Labels: c.Labels, Weight: c.Weight, Grace: c.Grace, DrainTimeout: c.DrainTimeout, FailoverHold: c.FailoverHold, Wall: c.seam.Wall, ZoneData: c.seam.ZoneData(),
		Ledger: l, Roster: roster.New(n.client, roster.Config{Namespace: c.Namespace, TTL: cluster.RosterTTL}),
		Lanes: r.lanes, Clock: n.clock, Health: n.health, Jobs: n.jobs, Slots: r.slots, Inbox: inbox,
		Moves: n.moves, Record: record, View: view, State: n.state, Beat: beat, Lost: lost, Log: n.log,
		Stalled: func() []roster.Stall { return stalled(r.runner) },
	})
	r.agenda = agenda.New(agenda.Config{
		Jobs: n.jobs, Clock: n.clock, Slots: r.slots, Inbox: inbox, Lanes: r.lanes, Order: r.cluster.TakeoverOrder(),
		Listener: n.events, Registrar: r.cluster, Answers: answers,
		MaxSkew: c.MaxSkew, Ahead: c.ClaimAhead, NewID: c.seam.NewID, Log: n.log,
	})
	return r
}

// errClientClosed is returned by Run when the program has closed the node's client.
var errClientClosed = fmt.Errorf("%w while the node ran: its runs may not be recorded; close the client after Run has returned", redis.ErrClosed)

// departWithClient ends the node when the program has closed its client.
func (n *parts) departWithClient(ctx context.Context, depart func()) {
	select {
	case <-n.health.ClientClosed():
		n.log.Error("the Redis client was closed while the node ran: the node ends, and cannot record its runs")
		depart()
	case <-ctx.Done():
	}
}

// clientClosed reports whether the program has closed the node's client.
func (n *parts) clientClosed() bool {
	select {
	case <-n.health.ClientClosed():
		return true
	default:
		return false
	}
}

// run starts the roles, and follow beside them if it is given, waits until ctx ends or the namespace
// has moved, and stops the roles in order.
func (r *roles) run(ctx context.Context, follow func(context.Context)) error {
	asked := ctx
	ctx, depart := context.WithCancel(ctx) // also called when the namespace has moved
	defer depart()
	// Roles that serve runs outlast ctx. stop ends them when no run is left.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	claiming, stopClaiming := context.WithCancel(alive) // outlasts ctx by the handover
	defer stopClaiming()
	var taking, keeping sync.WaitGroup
	r.lanes.Start(lane.Terms{
		Runner: r.runner, Sweeping: ctx, Claiming: claiming, Alive: alive, Group: &keeping,
	})
	taking.Go(func() { r.agenda.Run(claiming) })
	taking.Go(func() { r.cluster.Register(ctx) })
	taking.Go(func() { r.moves.Run(ctx, r.ledger, depart) })
	taking.Go(func() { r.departWithClient(ctx, depart) })
	if follow != nil {
		taking.Go(func() { follow(ctx) })
	}
	keeping.Go(func() { r.runner.Run(alive) })
	keeping.Go(func() { r.runner.KeepTails(alive) })
	keeping.Go(func() { r.cluster.Attend(alive) })
	keeping.Go(func() { r.events.run(alive) })

	<-ctx.Done()
	stopping := time.Now()
	r.log.Info("draining: the node hands over the jobs that it owns and claims nothing else", "running", r.slots.Used(), "timeout", r.cfg.DrainTimeout)
	r.cluster.HandOver()
	r.runner.Refuse()
	stopClaiming()
	left := r.cfg.DrainTimeout - time.Since(stopping)
	taking.Wait()
	err := r.runner.Drain(left)
	r.lanes.AssertBeforeLeaving(alive)
	stop()
	keeping.Wait()
	r.limits.Close()
	r.cluster.Leave(ctx)
	r.log.Info("node stopped")
	if r.moves.Moved() && asked.Err() == nil {
		err = errors.Join(err, r.moves.Gone())
	}
	if r.clientClosed() {
		err = errors.Join(fmt.Errorf("scheduler: node %s: %w", r.cfg.Name, errClientClosed), err)
	}
	return err
}

// stalled are the runs of a node that have stalled, for the roster.
func stalled(r *runner.Runner) (list []roster.Stall) {
	for _, s := range r.StalledRuns(roster.MaxStalled) {
		list = append(list, roster.Stall{Job: s.Lease.Job, Run: s.Lease.ID, Tick: s.Lease.Tick, After: s.After.Milliseconds()})
	}
	return list
}

// openLedger opens the ledger. newID makes the ids of incarnations.
func (n *parts) openLedger(ctx context.Context, newID func() string) (*ledger.Ledger, error) {
	cfg := n.cfg.ledger()
	cfg.NewID = newID
	l, err := ledger.Join(ctx, n.client, cfg)
	if err != nil {
		return nil, err
	}
	if l, err = n.confirming(ctx, l); err != nil {
		return nil, err
	}
	return l.Believing(func(context.Context) time.Time { return n.clock.Now() }), nil
}

// confirming is the ledger whose claims wait for Config.Confirm replicas.
func (n *parts) confirming(ctx context.Context, l *ledger.Ledger) (_ *ledger.Ledger, err error) {
	replicas := n.cfg.Confirm
	if replicas == ConfirmMajority {
		if replicas, err = redisconn.Majority(ctx, n.client); err != nil {
			return nil, fmt.Errorf("confirm: %w", err)
		}
		n.log.Info("claims are confirmed by replicas", "replicas", replicas)
	}
	return l.Confirming(replicas), nil
}

// evictionWithin bounds the questions for the eviction policy and the server's id, because a master
// of a Cluster may not answer.
const evictionWithin = 500 * time.Millisecond

// warnEviction warns of a Redis that drops keys when its memory is full. It checks once.
func (n *parts) warnEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	if policy, _ := redisconn.Evicts(ctx, n.client); policy != "" { // other problems show in the calls that matter
		n.log.Warn("Redis drops keys when its memory is full: a tick may run twice, and history vanish; set maxmemory-policy noeviction", "policy", policy)
	}
}

// warnUnnamed warns of a Redis that does not give its id, by which nodes notice a restart or
// failover. It calls INFO once more, to find the reason: the embedded server has no id, and does
// not survive a restart.
func (n *parts) warnUnnamed(ctx context.Context) {
	if n.clock.Server() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	err := n.client.Info(ctx, "server").Err()
	if err == nil || redis.IsPermissionError(err) || strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		n.log.Warn("Redis does not say which server it is, for this node's user may not ask for INFO, or the service hides master_replid and run_id: restarts and failovers go unnoticed, and after one that lost writes a tick may run twice; give the user the right to INFO (ACL SETUSER NAME +info)", "error", err)
	}
}
