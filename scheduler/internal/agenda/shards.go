package agenda

import (
	"github.com/escapement/escapement/scheduler/internal/ledger"
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
	room := min(len(j.mine), max(0, pendingMax-len(e.queue.heaps[shard]))) // the sweep finds the rest
	for _, n := range j.mine[:room] {
		e.wait(j, &ledger.Lease{
			Run: ledger.ShardRun(a.Detail, n), Job: j.Name, Tick: c.Tick, Shard: n, Shards: j.Shards, Of: a.Detail, Granted: now,
		})
	}
}
