package agenda

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/scheduler/ledger"
)

// tickClaim is the claim for a job's due cursor.
func tickClaim(j *state, now int64) ledger.Claim {
	// Redis' clock has come to the end of what it calls busy, whatever this node believes.
	s := plan(j.Job.Job, j.Schedule, j.cursor, j.outlook, max(now, j.outlook.busy.To-1))
	c := claimOf(j, "")
	c.From, c.Passes, c.Tick, c.Next, c.Trigger = j.cursor, s.passes, s.tick, s.next, s.trigger
	return c
}

// claimOf is what all claims of a job have in common.
func claimOf(j *state, run string) ledger.Claim {
	return ledger.Claim{
		Job: j.Name, Digest: j.Digest, Run: run, TTL: j.TTL, Overlap: j.Overlap, Attempts: j.Attempts(), Shards: j.Shards, Params: j.Params,
	}
}

// claim puts a claim into its partition's batch, with when a pending run comes too late. The caller has taken a slot for it.
func (e *Agenda) claim(j *state, c ledger.Claim, until int64) {
	if c.Shard {
		e.asking[c.Run] = true
	} else {
		j.claiming, j.ended = true, j.ends
	}
	at, filling := slices.BinarySearchFunc(e.open, j.Part, func(b *work.Batch, part int) int { return b.Part - part })
	if !filling {
		e.open = slices.Insert(e.open, at, &work.Batch{Part: j.Part, Made: time.Now()})
	}
	b := e.open[at]
	b.Jobs, b.Claims, b.Until = append(b.Jobs, j.Job), append(b.Claims, c), append(b.Until, until)
	if len(b.Claims) == ledger.BatchMax {
		e.open = slices.Delete(e.open, at, at+1)
		e.send(b)
	}
}

// send gives a batch that is open no more to Redis' side.
func (e *Agenda) send(b *work.Batch) {
	e.lead.asked(e.inflight)
	e.inflight++
	e.Lanes.Claim(b)
}
