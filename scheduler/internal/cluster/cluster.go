// Package cluster is a node's side of the cluster: its record in the roster, the jobs for which it
// goes first, the order in which nodes take late work, handovers, the stored definitions,
// generations and moves.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Config holds what a node needs to be part of a cluster.
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
	Lanes               *lane.Lanes
	Clock               *lane.Clock
	Health              *lane.Health
	Jobs                *work.Jobs
	Slots               *agenda.Slots
	Inbox               *agenda.Inbox
	Moves               *Moves
	View                *LatestView
	State               *NodeState
	Stalled             func() []roster.Stall // the node's runs that have stalled
	Beat                chan struct{}         // holds one signal: send a heartbeat now
	Lost                chan struct{}         // holds one signal: Redis may have lost data, register every job again
	Log                 *slog.Logger
}

// NodeState is the state of the node that several roles read.
type NodeState struct {
	Stopping   atomic.Bool                    // the node is to stop; it still claims until it has handed over
	Registered atomic.Bool                    // the first registration is complete
	Drain      atomic.Pointer[roster.Drained] // who drained the node's name; nil when nobody did
	Control    atomic.Pointer[ledger.Control] // as the registrar last read it
	Owned      atomic.Int64                   // for how many jobs the node goes first
	// Unclaimable is how many jobs are not claimed, by the reason; nil before the first registration. The map does not
	// change.
	Unclaimable atomic.Pointer[map[string]int]
	Tried       atomic.Int64                   // how many of the node's jobs have been registered, or refused
	Refused     atomic.Pointer[roster.Refusal] // a change of its configuration; nil when none was refused
}

// Cluster is a node's side of the cluster.
type Cluster struct {
	Config
	announcer *announcer
	members   *members
	registrar *registrar
}

// New makes a node that has not joined yet.
func New(c Config) *Cluster {
	n := &Cluster{Config: c}
	n.announcer = newAnnouncer(n)
	n.registrar = newRegistrar(n)
	n.members = newMembers(n)
	return n
}

// Join adds the node to the roster.
func (n *Cluster) Join(ctx context.Context) error { return n.members.join(ctx) }

// Leave removes the node from the roster, so that the others take over at once.
func (n *Cluster) Leave(ctx context.Context) {
	if err := n.members.leave(context.WithoutCancel(ctx)); err != nil {
		n.Log.Warn("the node could not leave the roster; the others drop it from there", "error", err, "after", RosterTTL)
	}
}

// Attend sends heartbeats until ctx ends.
func (n *Cluster) Attend(ctx context.Context) { n.members.run(ctx) }

// Register stores definitions until ctx ends.
func (n *Cluster) Register(ctx context.Context) { n.registrar.run(ctx) }

// Restore writes again what Redis has lost of the control record, and of the gates and incarnations of some partitions. It returns
// ledger.ErrClosed when a move has taken the namespace away. While the master of the control record is away, Restore notes that, does
// nothing, and returns nil: only the record shows that no move has closed the namespace.
func (n *Cluster) Restore(ctx context.Context, parts []int) error {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	if n.Moves.isClosed() {
		_, err := n.registrar.restore(call)
		return err
	}
	control, err := n.Ledger.RestoreControl(call, n.registrar.active())
	switch {
	case err == nil:
		return n.Ledger.RestoreParts(call, control, parts)
	case n.Ledger.Clustered() && errors.Is(err, locking.ErrUnreachable):
		n.Lanes.Beaten(err) // it is the control record's master, not that of the partitions
		return nil
	}
	return err
}

// Rejected notes jobs that cannot be claimed until they are registered again. It does not wait.
func (n *Cluster) Rejected(all []work.Rejection) { n.registrar.Rejected(all) }

// HandOver tells the others that the node stops, and waits until they know: for two seconds at
// most, and half of DrainTimeout.
func (n *Cluster) HandOver() {
	n.State.Stopping.Store(true)
	wait.Signal(n.Beat)
	if !n.Lanes.Unreachable() && !n.Moves.Moved() {
		wait.Within(n.members.handover.over, min(handOver, n.DrainTimeout/2)) // the other half is for the runs
	}
}

// problemMax bounds the text of a problem in the node's record, in bytes.
const problemMax = 200

// problem says, for the node's record in the roster, why the node claims nothing, or not
// everything; "" for none.
func (n *Cluster) problem() string {
	err := n.Lanes.Err()
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
