package agenda

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/scheduler/ledger"
)

// pendingMax bounds the pending runs that wait in the agenda for a slot, and pendingShare those of one
// job among them, so that none crowds out the others; more stay in Redis and are found by a later sweep.
const (
	pendingMax   = 1024
	pendingShare = 16
)

// consider takes up what a sweep found: overdue cursors go on the agenda when it is this node's
// turn, pending runs wait for the next free slot.
func (e *Agenda) consider(f Found) {
	now := e.Clock.Now()
	//guard:late-ticks P6 a tick that is late is anybody's
	for _, l := range f.Late {
		j := e.idle(l.Job)
		if j == nil || j.place >= 0 && j.cursor == l.Cursor || !j.owned && now.UnixMilli() < j.heldUntil || !e.Turns.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(l.Cursor))) {
			continue
		}
		j.cursor = l.Cursor
		e.heap.put(j, l.Cursor)
	}
	//guard:pending-found P6 a run that was handed back starts on another node
	e.pending = first(e.choose(f.Pending, now.UnixMilli()), e.elsewhere(e.pending, f.Parts))
	e.shards = first(e.chooseShards(f, now), e.elsewhere(e.shards, f.Parts))
	maps.DeleteFunc(e.asleep, func(_ string, until int64) bool { return until <= now.UnixMilli() })
}

// elsewhere are those of runs that live in none of these partitions.
func (e *Agenda) elsewhere(runs []ledger.Lease, parts []int) (list []ledger.Lease) {
	for _, p := range runs {
		if j := e.byName[p.Job]; j != nil && !slices.Contains(parts, j.Part) {
			list = append(list, p)
		}
	}
	return list
}

// first is some runs and then others, pendingMax at most.
func first(some, others []ledger.Lease) []ledger.Lease {
	all := append(some, others...)
	return all[:min(len(all), pendingMax)]
}

// choose takes the pending runs that this node may ask for now, those first that hold their job.
func (e *Agenda) choose(found []ledger.Lease, now int64) []ledger.Lease {
	slices.SortStableFunc(found, func(a, b ledger.Lease) int { return cmp.Compare(e.turn(a), e.turn(b)) })
	share := make(map[*state]int)
	var chosen []ledger.Lease
	for _, p := range found {
		j := e.byName[p.Job]
		if p.Of != "" || j == nil || j.outside || now < e.asleep[p.Run] || share[j] == pendingShare || len(chosen) == pendingMax {
			continue
		}
		share[j]++
		chosen = append(chosen, p)
	}
	return chosen
}

// turn is 0 for a pending run that the ledger has named as its job's holder, 1 for another one that was granted
// once, and so held the job when it was handed back or had crashed, and 2 for one that waits for the job. The
// holder must be asked for first: the others are answered held until then.
func (e *Agenda) turn(p ledger.Lease) int {
	j := e.byName[p.Job]
	switch {
	case j != nil && j.holder == p.Run:
		return 0
	case p.Holds:
		return 1
	}
	return 2
}

// firePending claims pending runs, before ticks, so that a busy node does not put them off for
// ever; one of a job at a time.
func (e *Agenda) firePending(now time.Time) {
	waiting := e.pending[:0]
	for _, p := range e.pending {
		j := e.byName[p.Job]
		if j == nil || j.outside || e.Lanes.Shut(j.Part) || now.UnixMilli() < e.asleep[p.Run] || !e.Turns.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(p.Granted))) {
			continue // the next sweep finds it again
		}
		if j.claiming || now.UnixMilli() < j.putOff || !e.Slots.take() {
			waiting = append(waiting, p)
			continue
		}
		j.pendingSince = p.Granted
		e.heap.drop(j)
		e.claim(j, pendingClaim(j, p, now), startUntil(j, p))
	}
	e.pending = waiting
}

// pendingClaim is the claim for a pending run.
func pendingClaim(j *state, p ledger.Lease, now time.Time) ledger.Claim {
	c := claimOf(j, p.Run)
	c.Pending, c.Shard, c.Tick = true, p.Of != "", p.Tick
	return work.Expired(c, startUntil(j, p), now.UnixMilli())
}

// startUntil is until when a pending run may start, ms: one that follows another job's may come too late, and so may a tick of the job's
// own that was handed back before it began. 0 is no such limit.
func startUntil(j *state, p ledger.Lease) int64 {
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

// shed puts away what this node would take only because others have not: late ticks and shards that wait for a slot, and
// what is pending.
func (e *Agenda) shed() {
	for _, j := range e.states {
		if !j.owned {
			e.heap.drop(j)
		}
	}
	e.pending = nil
	e.shards = slices.DeleteFunc(e.shards, func(p ledger.Lease) bool { return !slices.Contains(e.byName[p.Job].mine, p.Shard) })
}
