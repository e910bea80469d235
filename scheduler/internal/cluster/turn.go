package cluster

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// turnEvery separates the turns of nodes that contend for a late tick, by rendezvous rank.
	turnEvery = 50 * time.Millisecond
)

// Turns says whether it is this node's turn to take what is late: the owner's at once, the others' in the order of their rank when the
// grace is over. The owner need not stand first in rank, as the first may have had no room; its turn among the
// others then passes without anybody, wherever it is.
type Turns struct{ N *Cluster }

// Tick is for something of a job that is late by so much.
func (t Turns) Tick(j *work.Job, first bool, late time.Duration) bool {
	return t.N.myTurn(j, j.Name, first, late)
}

// Shard is for a shard of an open tick that has been pending for so long.
func (t Turns) Shard(j *work.Job, shard int, first bool, late time.Duration) bool {
	return t.N.myTurn(j, sharding.Part(j.Name, shard, max(j.Shards, shard+1, 2)), first, late)
}

// myTurn says whether this node may take what is late and ranked by a key. Who goes first may at any time: a
// drained node too, until it has handed over.
func (n *Cluster) myTurn(j *work.Job, key string, first bool, late time.Duration) bool {
	if first {
		return true
	}
	late = n.Lanes.Lateness(j.Part, late)
	if late < n.Grace || n.Standing.Drain.Load() != nil || !sharding.Matches(j.Labels, n.Labels) {
		return false
	}
	rank := slices.IndexFunc(sharding.Rank(key, n.View.Load().Holders(j)), func(x sharding.Node) bool { return x.ID == n.ID })
	return late >= n.Grace+time.Duration(min(max(rank, 0), lane.TurnsMax))*turnEvery
}
