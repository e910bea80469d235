// Package cluster is a node's side of the cluster: its record in the roster, the jobs that it
// owns, the order in which nodes take late work, handovers, the stored definitions,
// generations and moves.
package cluster

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Config holds the dependencies of a Cluster.
type Config struct {
	ID, Name, Namespace string
	Version, Generation string
	Labels              map[string]string
	Weight              int
	Grace, DrainTimeout time.Duration
	FailoverHold        time.Duration
	Wall                func() time.Time
	ZoneData            string // version of its time zone rules
	Ledger              *ledger.Ledger
	Roster              *roster.Roster
	Lanes               Lanes
	Clock               Clock
	Health              Health
	Jobs                *work.Jobs
	Slots               *agenda.Slots
	Inbox               *agenda.Inbox
	Moves               *Moves
	Record              *ControlRecord
	View                *LatestView
	State               *NodeState
	Stalled             func() []roster.Stall // the node's runs that have stalled
	Beat                chan struct{}         // holds one signal: send a heartbeat now
	Lost                chan struct{}         // holds one signal: Redis may have lost data, register every job again
	Log                 *slog.Logger
}

// Lanes are the node's connections to the masters.
type Lanes interface {
	registrarLanes
	heartbeatLanes
	// Overdue is how late something of a partition counts for the order of takeovers.
	Overdue(part int, by time.Duration) time.Duration
}

// Clock estimates Redis' time.
type Clock interface {
	Now() time.Time
	Ahead() time.Duration      // how far Redis' clock is ahead of the node's wall clock
	Unbelieved() time.Duration // how far it is ahead of the estimate, while the node does not believe it
}

// NodeState is the state of the node that several roles read.
type NodeState struct {
	Stopping   atomic.Bool                    // the node is to stop; it still claims until it has handed over
	Registered atomic.Bool                    // the first registration is complete
	Drain      atomic.Pointer[roster.Drained] // the drain of the node's name; nil for none
	Control    atomic.Pointer[ledger.Control] // as the registrar last read it
	Standby    atomic.Bool                    // all jobs are on standby
	Owned      atomic.Int64                   // how many jobs the node owns
	// Unclaimable is how many jobs are not claimed, by the reason; nil before the first registration. The map does not
	// change.
	Unclaimable atomic.Pointer[map[string]int]
	Tried       atomic.Int64                   // how many of the node's jobs have been registered, or refused
	Refused     atomic.Pointer[roster.Refusal] // a change of its configuration; nil when none was refused
}

// Cluster is a node's side of the cluster.
type Cluster struct {
	Config
	heartbeat *heartbeat
	registrar *registrar
}

// New makes a node that has not joined yet.
func New(c Config) *Cluster {
	promoted, viewChanged := make(chan struct{}, 1), make(chan struct{}, 1)
	a := newAnnouncer(announcerConfig{
		id: c.ID, generation: c.Generation, ledger: c.Ledger, roster: c.Roster, lanes: c.Lanes, jobs: c.Jobs, view: c.View, moves: c.Moves,
		clock: c.Clock, beat: c.Beat,
	})
	return &Cluster{
		Config: c,
		registrar: newRegistrar(registrarConfig{
			id: c.ID, namespace: c.Namespace, generation: c.Generation, ledger: c.Ledger, roster: c.Roster, lanes: c.Lanes, jobs: c.Jobs,
			announcer: a, record: c.Record, view: c.View, moves: c.Moves, state: c.State, clock: c.Clock, health: c.Health, inbox: c.Inbox,
			failoverHold: c.FailoverHold, log: c.Log, beat: c.Beat, redisLost: c.Lost, promoted: promoted, viewChanged: viewChanged,
		}),
		heartbeat: newHeartbeat(heartbeatConfig{
			identity: identity{
				id: c.ID, name: c.Name, version: c.Version, generation: c.Generation, labels: c.Labels, weight: c.Weight, zoneData: c.ZoneData, started: c.Wall(),
			},
			ledger: c.Ledger, roster: c.Roster, lanes: c.Lanes, jobs: c.Jobs, announcer: a, view: c.View, state: c.State, clock: c.Clock, slots: c.Slots,
			inbox: c.Inbox, failoverHold: c.FailoverHold, stalled: c.Stalled, log: c.Log,
			beatNow: c.Beat, redisLost: c.Lost, promoted: promoted, viewChanged: viewChanged,
		}),
	}
}

// Join adds the node to the roster.
func (n *Cluster) Join(ctx context.Context) error { return n.heartbeat.join(ctx) }

// Leave removes the node from the roster, so that the other nodes take over at once.
func (n *Cluster) Leave(ctx context.Context) {
	if err := n.heartbeat.leave(context.WithoutCancel(ctx)); err != nil {
		n.Log.Warn("the node could not leave the roster; the others drop it from there", "error", err, "after", RosterTTL)
	}
}

// Attend sends heartbeats until ctx ends.
func (n *Cluster) Attend(ctx context.Context) { n.heartbeat.run(ctx) }

// Register stores definitions until ctx ends.
func (n *Cluster) Register(ctx context.Context) { n.registrar.run(ctx) }

// Rejected notes jobs that cannot be claimed until they are registered again. It does not wait.
func (n *Cluster) Rejected(all []work.Rejection) { n.registrar.Rejected(all) }

// HandOver announces the node's stop to the other nodes, and waits until all have learnt it: for
// two seconds at most, and half of DrainTimeout.
func (n *Cluster) HandOver() {
	n.State.Stopping.Store(true)
	wait.Signal(n.Beat)
	if !n.Lanes.Unreachable() && !n.Moves.Moved() {
		wait.Within(n.heartbeat.handover.over, min(handOver, n.DrainTimeout/2)) // the other half is for the runs
	}
}

// problemMax bounds the text of a problem in the node's record, in bytes.
const problemMax = 200

// problem is the text, for the node's record in the roster, of an error because of which the node claims nothing, or not
// everything; "" for none.
func problem(err error) string {
	if err == nil {
		return ""
	}
	words := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "\uFFFD")
	if len(words) > problemMax {
		words = strings.ToValidUTF8(words[:problemMax], "")
	}
	return words
}

// instant formats an instant of Redis' time (ms) for a log; "never" for 0.
func instant(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
