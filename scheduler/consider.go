package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// pendingMax bounds the pending runs that wait in the engine for a slot; more stay in Redis and
// are found by a later sweep.
const pendingMax = 1024

// consider takes up what a sweep found: overdue cursors go on the agenda when it is this node's
// turn, pending runs wait for the next free slot.
func (e *engine) consider(f ledger.Finding) {
	now := e.clock.now()
	for _, l := range f.Late {
		j := e.idle(l.Job)
		if j == nil || j.place >= 0 && j.cursor == l.Cursor || !j.owned && now.UnixMilli() < j.heldUntil || !e.mayTake(j, now.Sub(time.UnixMilli(l.Cursor))) {
			continue
		}
		j.cursor = l.Cursor
		e.agenda.put(j, l.Cursor)
	}
	slices.SortStableFunc(f.Pending, func(a, b ledger.Lease) int { return cmp.Compare(unheld(a), unheld(b)) })
	e.pending = f.Pending[:min(len(f.Pending), pendingMax)]
}

// unheld is 0 for a pending run that holds its job, because it was granted once, and 1 for one that waits
// for the job. The former must be asked for first: the latter is answered held until then.
func unheld(p ledger.Lease) int {
	if p.Holds {
		return 0
	}
	return 1
}

// firePending claims pending runs, before ticks, so that a busy node does not put them off for
// ever; one of a job at a time.
func (e *engine) firePending(now time.Time) {
	waiting := e.pending[:0]
	for _, p := range e.pending {
		j := e.idle(p.Job)
		if j == nil || !e.mayTake(j, now.Sub(time.UnixMilli(p.Granted))) {
			continue // the next sweep finds it again
		}
		if now.UnixMilli() < j.putOff || !e.slots.take() {
			waiting = append(waiting, p)
			continue
		}
		j.pendingSince = p.Granted
		e.agenda.drop(j)
		e.claim(j, pendingClaim(j, p, now))
	}
	e.pending = waiting
}

// pendingClaim is the claim for a pending run. One that follows another job's may have come too late.
func pendingClaim(j *job, p ledger.Lease, now time.Time) ledger.Claim {
	c := claimOf(j, p.Run)
	c.Pending = true
	after := p.Trigger == jobs.TriggerAfter.String() && !p.Holds
	if after && j.StartWithin > 0 && now.Sub(time.UnixMilli(p.Granted)) > j.StartWithin {
		c.Drop = ledger.ReasonStartWithin
	}
	return c
}

// idle is the job of that name if this node may claim it now.
func (e *engine) idle(name string) *job {
	j := e.byName[name]
	if j == nil || j.claiming || j.outside {
		return nil
	}
	return j
}
