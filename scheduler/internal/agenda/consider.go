package agenda

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// pendingMax bounds the pending runs that wait in the agenda for a slot, those of all partitions, and so the shards, and pendingShare the runs of one job
// among them, so that none crowds out the others; more stay in Redis and are found by a later sweep. This node's shards of ticks
// that were opened since the sweep looked come besides, no more than pendingMax either.
const (
	pendingMax   = 1024
	pendingShare = 16
)

// consider takes up what a sweep found, as far as it is this node's turn: overdue cursors, and what is pending.
func (e *Agenda) consider(f Found) {
	now := e.Clock.Now()
	//guard:late-ticks P6 a tick that is late is anybody's
	for _, l := range f.Late {
		j := e.idle(l.Job)
		if j == nil || j.tick.place >= 0 && j.cursor == l.Cursor || !j.owned && now.UnixMilli() < j.heldUntil || !e.Turns.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(l.Cursor))) {
			continue
		}
		j.cursor = l.Cursor
		e.queue.put(&j.tick, l.Cursor)
	}
	//guard:pending-found P6 a run that was handed back starts on another node
	e.find(f, now)
}

// find takes up what a sweep found pending, of each job those first that hold it, and forgets what it did not find. A claim in flight
// stays, and so do this node's shards, whose tick may have been opened since the sweep looked: one that has gone meanwhile costs a claim.
func (e *Agenda) find(f Found, now time.Time) {
	slices.SortStableFunc(f.Pending, func(a, b ledger.Lease) int { return cmp.Compare(e.turn(&a), e.turn(&b)) })
	share, all, chosen := make(map[*state]int), [kinds]int{}, make(map[string]bool)
	for _, c := range e.waiting {
		if !slices.Contains(f.Parts, c.job.Part) {
			all[c.kind]++
		}
	}
	for i := range f.Pending {
		p := &f.Pending[i]
		j, k, late := e.byName[p.Job], kindOf(p), now.Sub(time.UnixMilli(p.Granted))
		switch {
		case j == nil || j.outside || all[k] == pendingMax || k == pending && share[j] == pendingShare,
			k == pending && !e.Turns.Tick(j.Job, j.owned, late), k == shard && !e.Turns.Shard(j.Job, p.Shard, j.first(p), late):
			continue
		case k == pending:
			share[j]++
		}
		all[k]++
		chosen[p.Run] = true
		e.wait(j, p)
	}
	e.leave(func(c *candidate) bool { return !chosen[c.run.Run] && slices.Contains(f.Parts, c.job.Part) })
}

// leave forgets some of what is pending, but no claim in flight and no shard that this node goes first for.
func (e *Agenda) leave(some func(*candidate) bool) {
	for _, c := range e.waiting {
		if !c.asked && !c.job.first(c.run) && some(c) {
			e.forget(c)
		}
	}
}

// wait makes a candidate of what is pending, if it is none yet, and offers it unless it is asked for.
func (e *Agenda) wait(j *state, p *ledger.Lease) {
	c := e.waiting[p.Run]
	if c == nil {
		c = &candidate{job: j, kind: kindOf(p), place: -1}
		e.waiting[p.Run] = c
		if c.kind == pending {
			j.pending = append(j.pending, c)
		}
	}
	if c.run = p; !c.asked {
		e.offer(c)
	}
}

// offer puts what is pending into the queue, at once and by turns; what waits for its job, when that is to be asked for again.
func (e *Agenda) offer(c *candidate) {
	at := e.turn(c.run)
	if c.kind == pending {
		at += max(c.asleep, c.job.putOff)
	}
	e.queue.put(c, at)
}

// forget is for what is pending no more, or left to the next sweep.
func (e *Agenda) forget(c *candidate) {
	e.queue.drop(c)
	delete(e.waiting, c.run.Run)
	if c.kind == pending {
		c.job.pending = slices.DeleteFunc(c.job.pending, func(p *candidate) bool { return p == c })
	}
}

// turn is, of a job's pending runs, 0 for the one that the ledger has named as its holder, 1 for another one that was granted
// once, and so held the job when it was handed back or had crashed, and 2 for one that waits for the job. The holder must be
// asked for first: the others are answered held until then. Of shards it is 0 for those that this node goes first for.
func (e *Agenda) turn(p *ledger.Lease) int64 {
	j := e.byName[p.Job]
	switch {
	case j != nil && (j.holder == p.Run || j.first(p)):
		return 0
	case p.Holds:
		return 1
	}
	return 2
}

// pendingClaim is the claim for a pending run.
func pendingClaim(j *state, p *ledger.Lease, now time.Time) ledger.Claim {
	c := claimOf(j, p.Run)
	c.Pending, c.Shard, c.Tick = true, p.Of != "", p.Tick
	return work.Expired(c, startUntil(j, p), now.UnixMilli())
}

// startUntil is until when a pending run may start, ms: one that follows another job's may come too late, and so may a tick of the job's
// own that was handed back before it began. 0 is no such limit.
func startUntil(j *state, p *ledger.Lease) int64 {
	follows := p.Trigger == jobs.TriggerAfter.String()
	switch {
	case j.StartWithin == 0 || p.Of != "":
		return 0
	case follows && !p.Holds:
		return p.Granted + j.StartWithin.Milliseconds()
	case !follows && p.Prev != 0: // further attempts are no steps of the cursor
		return p.Tick + j.StartWithin.Milliseconds()
	}
	return 0
}

// idle is the job of that name if this node may claim a tick of it now. One that follows another has none, whatever is
// overdue: the sweep looked before its schedule was replaced, or the record is a strange one.
func (e *Agenda) idle(name string) *state {
	j := e.byName[name]
	if j == nil || j.claiming || j.outside || j.Schedule == nil {
		return nil
	}
	return j
}

// shed puts away what this node would take only because others have not: late ticks, and what is pending but for its own shards.
func (e *Agenda) shed() {
	for _, j := range e.order {
		if !j.owned {
			e.queue.drop(&j.tick)
		}
	}
	e.leave(func(*candidate) bool { return true })
}
