package cluster

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// turnEvery separates the turns of nodes that contend for late work, by rendezvous rank.
	turnEvery = 50 * time.Millisecond
)

// Turns decides whether this node may take late work. The owner may at once, the others in the
// order of their rank when the grace is over. The owner is not always first in rank, because shares
// are limited; its own turn among the others then passes unused.
type Turns struct{ N *Cluster }

// Tick reports whether the node may take a tick or run of a job that is late by so much.
func (t Turns) Tick(j *work.Job, first bool, late time.Duration) bool {
	return t.N.myTurn(j, j.Name, first, late)
}

// Shard reports whether the node may take a shard that has been pending for so long.
func (t Turns) Shard(j *work.Job, shard int, first bool, late time.Duration) bool {
	return t.N.myTurn(j, sharding.Part(j.Name, shard, max(j.Shards, shard+1, 2)), first, late)
}

// myTurn reports whether this node may take late work that is ranked by a key. The node that goes
// first always may, a drained one too until it has handed over.
func (n *Cluster) myTurn(j *work.Job, key string, first bool, late time.Duration) bool {
	if first {
		return true
	}
	late = n.Lanes.Overdue(j.Part, late)
	if late < n.Grace || n.State.Drain.Load() != nil || !sharding.Matches(j.Labels, n.Labels) {
		return false
	}
	rank := slices.IndexFunc(sharding.Rank(key, n.View.Load().Holders(j)), func(x sharding.Node) bool { return x.ID == n.ID })
	return late >= n.Grace+time.Duration(min(max(rank, 0), lane.TurnsMax))*turnEvery
}
