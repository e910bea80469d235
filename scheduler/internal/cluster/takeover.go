package cluster

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// takeoverEvery separates the nodes that contend for late work, by rendezvous rank.
const takeoverEvery = 50 * time.Millisecond

// TakeoverOrder decides whether this node may take late work. The owner may at once, the other nodes in the
// order of their rank when the grace is over. The owner is not always first in rank, because shares
// are limited; its own place among the other nodes then passes unused.
type TakeoverOrder struct {
	id      string
	labels  map[string]string
	grace   time.Duration
	view    *LatestView
	state   *NodeState
	overdue func(part int, late time.Duration) time.Duration
}

// TakeoverOrder is the node's place among the nodes that take late work.
func (n *Cluster) TakeoverOrder() TakeoverOrder {
	return TakeoverOrder{n.ID, n.Labels, n.Grace, n.View, n.State, n.Lanes.Overdue}
}

// Tick reports whether the node may take a tick or run of a job that is late by so much.
func (o TakeoverOrder) Tick(j *work.Job, first bool, late time.Duration) bool {
	return o.mayTake(j, j.Name, first, late)
}

// Shard reports whether the node may take a shard that has been pending for so long.
func (o TakeoverOrder) Shard(j *work.Job, shard int, first bool, late time.Duration) bool {
	return o.mayTake(j, sharding.Part(j.Name, shard, max(j.Shards, shard+1, 2)), first, late)
}

// mayTake reports whether this node may take late work that is ranked by a key. The owner
// always may, a drained one too until it has handed over.
func (o TakeoverOrder) mayTake(j *work.Job, key string, first bool, late time.Duration) bool {
	if first {
		return true
	}
	late = o.overdue(j.Part, late)
	if late < o.grace || o.state.Drain.Load() != nil || !sharding.Matches(j.Labels, o.labels) {
		return false
	}
	rank := slices.IndexFunc(sharding.Rank(key, o.view.Load().Holders(j)), func(x sharding.Node) bool { return x.ID == o.id })
	return late >= o.grace+time.Duration(min(max(rank, 0), lane.TakeoverMax))*takeoverEvery
}
