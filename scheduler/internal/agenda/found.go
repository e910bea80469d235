package agenda

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// pendingMax bounds the pending runs in the agenda, over all partitions, and the shards likewise.
// pendingShare bounds the runs of one job among them, so that no job takes all places. Further runs
// stay in Redis, where a later sweep finds them. The node's own shards of ticks that were opened
// after the sweep come on top, pendingMax at most.
const (
	pendingMax   = 1024
	pendingShare = 16
)

// consider takes a sweep's overdue jobs and pending runs, as far as it is this node's turn.
func (a *Agenda) consider(f Found) {
	now := a.Clock.Now()
	a.forgetOld(now)
	//guard:late-ticks P6 a tick that is late is anybody's
	for _, l := range f.Late {
		j := a.claimable(l.Job)
		if j == nil || j.tick.index >= 0 && j.cursor == l.Cursor || !j.owned && now.UnixMilli() < j.tickHeldUntil || !a.Order.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(l.Cursor))) {
			continue
		}
		j.cursor = l.Cursor
		a.queue.put(&j.tick, l.Cursor)
	}
	//guard:pending-found P6 a run that was handed back starts on another node
	a.findPending(f, now)
}

// findPending takes the pending runs that a sweep found, and drops the rest. Runs that hold their
// job come first. A claim in flight stays. So do the node's own shards, whose tick may have been
// opened after the sweep; a stale one costs a claim.
func (a *Agenda) findPending(f Found, now time.Time) {
	slices.SortStableFunc(f.Pending, func(x, y ledger.Run) int { return cmp.Compare(a.priority(&x), a.priority(&y)) })
	share, all, chosen := make(map[*jobState]int), [kinds]int{}, make(map[string]bool)
	for _, c := range a.waiting {
		if !slices.Contains(f.Parts, c.job.Part) {
			all[c.kind]++
		}
	}
	for i := range f.Pending {
		p := &f.Pending[i]
		j, k, late := a.byName[p.Job], kindOf(p), now.Sub(time.UnixMilli(p.Granted))
		switch {
		case j == nil || j.unclaimable || all[k] == pendingMax || k == pending && share[j] == pendingShare, !a.mayRetry(j, p, late),
			k == pending && !a.Order.Tick(j.Job, j.owned, late), k == shard && !a.Order.Shard(j.Job, p.Shard, j.ownsShard(p), late):
			continue
		case k == pending:
			share[j]++
		}
		all[k]++
		chosen[p.ID] = true
		a.addPending(j, p)
	}
	a.dropPending(func(c *candidate) bool { return !chosen[c.run.ID] && slices.Contains(f.Parts, c.job.Part) })
}

// dropPending drops the pending runs that match, but no claim in flight and no shard that this node
// owns.
func (a *Agenda) dropPending(some func(*candidate) bool) {
	for _, c := range a.waiting {
		if !c.inFlight && !c.job.ownsShard(c.run) && some(c) {
			a.forget(c)
		}
	}
}

// addPending makes a candidate of a pending run, if there is none yet, and queues it unless it is
// claimed already.
func (a *Agenda) addPending(j *jobState, p *ledger.Run) {
	c := a.waiting[p.ID]
	if c == nil {
		c = &candidate{job: j, kind: kindOf(p), index: -1}
		a.waiting[p.ID] = c
		if c.kind == pending {
			j.pending = append(j.pending, c)
		}
	}
	if c.run = p; !c.inFlight {
		a.enqueue(c)
	}
}

// enqueue queues a pending run at its priority. A run whose job is held waits until the job is
// claimed again.
func (a *Agenda) enqueue(c *candidate) {
	at := a.priority(c.run)
	if c.kind == pending {
		at += max(c.pausedUntil, c.job.pendingHeldUntil)
	}
	a.queue.put(c, at)
}

// forget drops a pending run that has ended, or that a later sweep is to find again.
func (a *Agenda) forget(c *candidate) {
	a.queue.drop(c)
	delete(a.waiting, c.run.ID)
	if c.kind == pending {
		c.job.pending = slices.DeleteFunc(c.job.pending, func(p *candidate) bool { return p == c })
	}
}

// priority orders the pending runs of a job, 0 first. 0 is the run that the ledger named as the
// job's holder, 1 a run that held the job before it was handed back or its node crashed, 3 a run of
// a backfill, which has time, 2 any other. Claims of later runs are answered held until the holder
// has run. For shards, 0 are the shards that this node owns.
func (a *Agenda) priority(p *ledger.Run) int64 {
	j := a.byName[p.Job]
	switch {
	case j != nil && (j.holder == p.ID || j.ownsShard(p)):
		return 0
	case p.ReservesJob:
		return 1
	case p.Trigger == jobs.TriggerBackfill.String():
		return 3
	}
	return 2
}

// pendingClaim is the claim for a pending run.
func pendingClaim(j *jobState, p *ledger.Run, now time.Time) claim.Claim {
	c := claimOf(j, p.ID)
	c.Pending, c.Shard, c.Tick = true, p.TickID != "", p.Tick
	if p.Trigger == jobs.TriggerBackfill.String() { // its own parallel bounds it: it neither holds the job nor waits
		c.Overlap = jobs.OverlapAllow
	}
	return work.Expired(c, j.StartBy(p), now.UnixMilli())
}

// claimable is the job of that name if this node may claim a tick of it now, else nil. A job that
// follows another has no ticks of its own, even if an outdated record shows one overdue.
func (a *Agenda) claimable(name string) *jobState {
	j := a.byName[name]
	if j == nil || j.claiming || j.unclaimable || j.Schedule == nil {
		return nil
	}
	return j
}

// ownOnly drops the work that this node would only take over from other nodes: late ticks of their
// jobs, and pending runs but for the node's own shards.
func (a *Agenda) ownOnly() {
	for _, j := range a.order {
		if !j.owned {
			a.queue.drop(&j.tick)
		}
	}
	a.dropPending(func(*candidate) bool { return true })
}
