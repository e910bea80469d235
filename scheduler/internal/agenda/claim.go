package agenda

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// claimTick claims a job's next step from its cursor. The caller has taken a slot.
func (a *Agenda) claimTick(t *candidate, now int64) {
	j := t.job
	s := plan(j.Job.Job, j.Schedule, j.cursor, j.windows, max(now, j.cursor, j.windows.busyUntil(now, a.MaxSkew)))
	if j.cursor > now && s.tick != j.cursor { // ticks that will not run are recorded when they are due, not ahead
		a.Slots.release(1)
		a.queue.put(t, j.cursor)
		return
	}
	c := claimOf(j, a.NewID())
	c.From, c.Skipped, c.Tick, c.Next, c.Trigger = j.cursor, s.passes, s.tick, s.next, s.trigger
	if c.Tick != 0 {
		a.Listener.Due(j.Name, c.Tick)
	}
	a.claim(t, c, 0)
}

// claimOf is the part that all claims of a job have in common.
func claimOf(j *jobState, run string) claim.Claim {
	return claim.Claim{
		Job: j.Name, Digest: j.Digest, Run: run, TTL: j.TTL, Overlap: j.Overlap, Attempts: j.Attempts(), Shards: j.Shards, Params: j.Params, MaxRuns: j.MaxRuns,
	}
}

// claim puts a claim into the batch of its partition. A pending run must start by until (ms, 0 for
// no limit). The caller has taken a slot.
func (a *Agenda) claim(from *candidate, c claim.Claim, until int64) {
	j := from.job
	a.queue.drop(from)
	from.inFlight = true
	j.inFlight++
	if from.kind != pending {
		a.queue.lastKind = from.kind
	}
	if from.kind != shard {
		a.queue.drop(&j.tick)
		j.claiming, j.endsAtClaim = true, j.ends
	}
	at, filling := slices.BinarySearchFunc(a.open, j.Part, func(b *work.Batch, part int) int { return b.Part - part })
	if !filling {
		a.open = slices.Insert(a.open, at, &work.Batch{Part: j.Part, Created: time.Now()})
	}
	b := a.open[at]
	b.Jobs, b.Claims, b.StartBy = append(b.Jobs, j.Job), append(b.Claims, c), append(b.StartBy, until)
	if len(b.Claims) == ledger.BatchMax {
		a.open = slices.Delete(a.open, at, at+1)
		a.send(b)
	}
}

// send gives a batch to the lanes.
func (a *Agenda) send(b *work.Batch) {
	a.lead.sent(a.inflight)
	a.inflight++
	a.Lanes.Claim(b)
}
