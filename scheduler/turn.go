package scheduler

import (
	"slices"
	"time"

	"github.com/escapement/escapement/sharding"
)

const (
	// turnEvery separates the turns of nodes that contend for a late tick, by rendezvous rank.
	turnEvery = 50 * time.Millisecond
	// turnsMax bounds the wait of the last in a large cluster, for promise P6.
	turnsMax = 10
)

// mayTake says whether it is this node's turn to take something of a job that is late by so
// much: the owner's at once, the others' in the order of their rank when the grace is over. The
// owner need not stand first in rank, as the first may have had no room; its turn among the
// others then passes without anybody, wherever it is.
func (n *Node) mayTake(j *job, late time.Duration) bool {
	return n.myTurn(j, j.Name, j.owned, late)
}

// mayShard is mayTake for a shard of an open tick that has been pending for so long.
func (n *Node) mayShard(j *job, shard int, late time.Duration) bool {
	return n.myTurn(j, sharding.Part(j.Name, shard, max(j.Shards, shard+1, 2)), slices.Contains(j.mine, shard), late)
}

// myTurn says whether this node may take what is late and ranked by a key. Who goes first may at any time: a
// drained node too, until it has handed over.
func (n *Node) myTurn(j *job, key string, first bool, late time.Duration) bool {
	if first {
		return true
	}
	late = n.quiet.late(j.part, n.health.late(late))
	if late < n.cfg.Grace || n.cordon.Load() != nil || !sharding.Matches(j.Labels, n.cfg.Labels) {
		return false
	}
	rank := slices.IndexFunc(sharding.Rank(key, n.crowd.Load().holders(j)), func(x sharding.Node) bool { return x.ID == n.id })
	return late >= n.cfg.Grace+time.Duration(min(max(rank, 0), turnsMax))*turnEvery
}
