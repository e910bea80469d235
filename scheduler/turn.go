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
	if j.owned {
		return true
	}
	if late < n.cfg.Grace || !sharding.Matches(j.Labels, n.cfg.Labels) {
		return false
	}
	rank := slices.IndexFunc(sharding.Rank(j.Name, n.crowd.Load().holders(j)), func(x sharding.Node) bool { return x.ID == n.id })
	return late >= n.cfg.Grace+time.Duration(min(max(rank, 0), turnsMax))*turnEvery
}
