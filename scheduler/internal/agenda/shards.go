package agenda

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// A tick of a sharded job is opened by the first claim of it, whichever node's. From then on its shards are pending
// runs. The nodes that go first for one of them all claim the tick when it is due; each is answered that it is open and
// asks for its own shards at once. Those of nodes that do not ask are found by the sweep, and taken in turn.

// opened takes up that a tick is open: this node's shards of it are asked for before anything else.
func (e *Agenda) opened(j *state, c ledger.Claim, a ledger.Answer) {
	if c.Pending {
		e.again(j, j.cursor, 0)
	} else {
		if a.Detail == c.Run { // by this very claim
			e.passed(j, c.Passes)
		}
		j.outlook.busy = ledger.Window{}
		e.again(j, a.Cursor, 0)
	}
	now := e.Clock.Now().UnixMilli()
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
func (e *Agenda) chooseShards(f Found, now time.Time) []ledger.Lease {
	var chosen []ledger.Lease
	known := make(map[string]bool)
	for _, p := range f.Pending {
		j := e.byName[p.Job]
		if p.Of == "" || j == nil || j.outside || e.asking[p.Run] || len(chosen) == pendingMax {
			continue
		}
		known[p.Run] = true
		if e.Turns.Shard(j.Job, p.Shard, slices.Contains(j.mine, p.Shard), now.Sub(time.UnixMilli(p.Granted))) {
			chosen = append(chosen, p)
		}
	}
	for _, p := range e.shards {
		if j := e.byName[p.Job]; !known[p.Run] && len(chosen) < pendingMax && slices.Contains(j.mine, p.Shard) && slices.Contains(f.Parts, j.Part) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// fireShard claims the first shard that waits, for which the caller has taken a slot; false when it does not need it.
func (e *Agenda) fireShard(now time.Time) bool {
	p := e.shards[0]
	e.shards = e.shards[1:]
	j := e.byName[p.Job]
	if j.outside || e.Lanes.Shut(j.Part) || e.asking[p.Run] {
		return false // the next sweep finds it again
	}
	e.claim(j, pendingClaim(j, p, now), 0)
	return true
}
