// Package cluster is a node among others: its place in the roster, for which jobs it goes first, whose turn it is to take what is
// late, how it hands over, which definitions it stores, and what it does about generations and moves.
package cluster

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// Config is what a node needs to be one of a cluster.
type Config struct {
	ID, Name, Namespace           string
	Version, Revision, Generation string
	Labels                        map[string]string
	Weight                        int
	Grace, DrainTimeout           time.Duration
	Wall                          func() time.Time
	Ledger                        *ledger.Ledger
	Roster                        *roster.Roster
	Lanes                         *lane.Lanes
	Clock                         *lane.Clock
	Health                        *lane.Health
	Jobs                          *work.Jobs
	Slots                         *agenda.Slots
	Inbox                         *agenda.Inbox
	Moves                         *Moves
	View                          *LatestView
	Standing                      *Standing
	Beat                          chan struct{} // holds one signal: beat before the period is over
	Lost                          chan struct{} // holds one signal: Redis may have lost what it knew, register everything
	Log                           *slog.Logger
}

// Standing is what the whole node goes by of its place in the cluster.
type Standing struct {
	Leaving    atomic.Bool                    // it was told to end; it still claims until it has handed over
	Registered atomic.Bool                    // once
	Drain      atomic.Pointer[roster.Drained] // who drained the node's name; nil when nobody did
	Control    atomic.Pointer[ledger.Control] // as the registrar last read it
}

// LatestView is the cluster as the last beat showed it.
type LatestView struct{ last atomic.Pointer[View] }

// Load is all of it; nil before the first beat.
func (v *LatestView) Load() *View { return v.last.Load() }

func (v *LatestView) set(c *View) { v.last.Store(c) }

// Living are the nodes; none before the first beat.
func (v *LatestView) Living() []sharding.Node {
	if c := v.Load(); c != nil {
		return c.Nodes
	}
	return nil
}

// Runs is Crowd.Runs.
func (v *LatestView) Runs(job, digest string, labels map[string]string) bool {
	return v.Load().Runs(job, digest, labels)
}

// Digests is Crowd.Digests.
func (v *LatestView) Digests(job string) []string { return v.Load().Digests(job) }

// Cluster is a node among others.
type Cluster struct {
	Config
	announcer *announcer
	members   *members
	registrar *registrar
}

// New makes a node that is in no roster yet.
func New(c Config) *Cluster {
	n := &Cluster{Config: c}
	n.announcer = newAnnouncer(n)
	n.registrar = newRegistrar(n)
	n.members = newMembers(n)
	return n
}

// Join enters the roster.
func (n *Cluster) Join(ctx context.Context) error { return n.members.join(ctx) }

// Leave takes the node out of the roster, so that the others take over at once.
func (n *Cluster) Leave(ctx context.Context) {
	if err := n.members.leave(context.WithoutCancel(ctx)); err != nil {
		n.Log.Warn("the node could not leave the roster; it will be dropped from it by itself", "error", err, "after", RosterTTL)
	}
}

// Attend beats until ctx ends.
func (n *Cluster) Attend(ctx context.Context) { n.members.run(ctx) }

// Register stores definitions until ctx ends.
func (n *Cluster) Register(ctx context.Context) { n.registrar.run(ctx) }

// Rejected is told of a job that cannot be claimed until it is registered again. It does not wait.
func (n *Cluster) Rejected(j *work.Job, why string) { n.registrar.Rejected(j, why) }

// HandOver tells the others that the node ends, and waits until they know: two seconds at most, and half of DrainTimeout.
func (n *Cluster) HandOver() {
	n.Standing.Leaving.Store(true)
	wait.Signal(n.Beat)
	if !n.Lanes.Unreachable() && !n.Moves.Moved() {
		wait.Within(n.members.handing.over, min(handOver, n.DrainTimeout/2)) // what starts last has as long
	}
}

// mostTrouble bounds what a node's record says of its trouble, in bytes.
const mostTrouble = 200

// trouble is why the node claims nothing, or not everything, for its record in the roster, "" for none.
func (n *Cluster) trouble() string {
	err := n.Lanes.Err()
	if err == nil {
		return ""
	}
	words := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "\uFFFD")
	if len(words) > mostTrouble {
		words = strings.ToValidUTF8(words[:mostTrouble], "")
	}
	return words
}

// instant is one of Redis' time in ms, for a log; "never" for 0.
func instant(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
