package scheduler

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// A tick of a sharded job is opened by the first claim of it, whichever node's. From then on its shards are pending
// runs. The nodes that go first for one of them all claim the tick when it is due; each is answered that it is open and
// asks for its own shards at once. Those of nodes that do not ask are found by the sweep, and taken in turn.

// opened takes up that a tick is open: this node's shards of it are asked for before anything else.
func (e *engine) opened(j *job, c ledger.Claim, a ledger.Answer) {
	if c.Pending {
		e.again(j, j.cursor, 0)
	} else {
		if a.Detail == c.Run { // by this very claim
			e.passed(j, c.Passes)
		}
		j.outlook.busy = ledger.Window{}
		e.again(j, a.Cursor, 0)
	}
	now := e.clock.now().UnixMilli()
	room := min(len(j.mine), max(0, pendingMax-len(e.shards))) // the sweep finds the rest
	own := make([]ledger.Lease, 0, room+len(e.shards))
	for _, shard := range j.mine[:room] {
		own = append(own, ledger.Lease{
			Run: ledger.ShardRun(a.Detail, shard), Job: j.Name, Tick: c.Tick, Shard: shard, Shards: j.Shards, Of: a.Detail, Granted: now,
		})
	}
	e.shards = append(own, e.shards...)
}

// chooseShards takes, of what a sweep found, the shards that this node may ask for now. Its own of a tick that was opened
// since the sweep looked wait on; one that has gone meanwhile costs a claim.
func (e *engine) chooseShards(found []ledger.Lease, now time.Time) []ledger.Lease {
	var chosen []ledger.Lease
	known := make(map[string]bool)
	for _, p := range found {
		j := e.byName[p.Job]
		if p.Of == "" || j == nil || j.outside || e.asking[p.Run] || len(chosen) == pendingMax {
			continue
		}
		known[p.Run] = true
		if e.mayShard(j, p.Shard, now.Sub(time.UnixMilli(p.Granted))) {
			chosen = append(chosen, p)
		}
	}
	for _, p := range e.shards {
		if !known[p.Run] && len(chosen) < pendingMax && slices.Contains(e.byName[p.Job].mine, p.Shard) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// fireShard claims the first shard that waits, for which the caller has taken a slot; false when it does not need it.
func (e *engine) fireShard(now time.Time) bool {
	p := e.shards[0]
	e.shards = e.shards[1:]
	j := e.byName[p.Job]
	if j.outside || e.shut(j.part) || e.asking[p.Run] {
		return false // the next sweep finds it again
	}
	e.claim(j, pendingClaim(j, p, now))
	return true
}

// shardVerdict acts on the answer to the claim of a shard. What another node was granted, or what has to wait, the
// sweep finds again or not.
func (e *engine) shardVerdict(j *job, b *batch, i int) {
	c := b.claims[i]
	delete(e.asking, c.Run)
	if b.err != nil {
		e.slots.give()
		return
	}
	a := b.answers[i]
	if a.Verdict == ledger.Granted && e.news(c.Run, a.Token) {
		e.begin(j, c, a, b)
		return
	}
	e.slots.give()
	switch a.Verdict {
	case ledger.Passed:
		e.passed(j, []ledger.Pass{recorded(c, a)})
	case ledger.Superseded:
		e.expel(j, superseded)
	case ledger.Closed:
		e.expel(j, sealed)
	case ledger.Unknown:
		e.expel(j, vanished)
	case ledger.Foreign:
		e.expel(j, foreign)
	default: // granted before, moved, early, held
	}
}

// shardsOf are the shards of a job for which this node goes first. They are spread evenly over those who hold the
// job, each job's for itself, because they run at the same time.
func (n *Node) shardsOf(j *job, holders []sharding.Node) (mine []int) {
	keys := make([]string, j.Shards)
	for shard := range keys {
		keys[shard] = sharding.Part(j.Name, shard, j.Shards)
	}
	for shard, node := range sharding.Assign(keys, holders) {
		if node >= 0 && holders[node].ID == n.id {
			mine = append(mine, shard)
		}
	}
	return mine
}
