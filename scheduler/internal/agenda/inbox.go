package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Event is a message from another role to the agenda.
type Event interface {
	// apply handles the event in the agenda's goroutine.
	apply(a *Agenda)
	// afterEnd does what remains to be done when the agenda has ended.
	afterEnd(s *Slots)
}

// Inbox carries events to the agenda.
type Inbox struct {
	slots  *Slots
	events chan Event
	done   chan struct{} // closed when the agenda has ended
}

// NewInbox makes the inbox of the agenda that uses these slots.
func NewInbox(s *Slots) *Inbox {
	return &Inbox{slots: s, events: make(chan Event), done: make(chan struct{})}
}

// Send waits until the agenda has taken an event, or has ended.
func (b *Inbox) Send(e Event) {
	select {
	case b.events <- e:
	case <-b.done:
		e.afterEnd(b.slots)
	}
}

// Found has the overdue jobs and pending runs of a sweep of some partitions.
type Found struct {
	query.ScanResult
	Parts []int
}

func (v Found) apply(a *Agenda) { a.consider(v) }
func (Found) afterEnd(*Slots)   {}

// Owned lists the jobs, and their shards, that this node owns from now on.
type Owned struct {
	Jobs   map[*work.Job]bool
	Shards map[*work.Job][]int
}

func (v Owned) apply(a *Agenda) { a.own(v.Jobs, v.Shards) }
func (Owned) afterEnd(*Slots)   {}

// Registered are jobs whose stored definition is the node's own, with their cursors (ms).
type Registered struct {
	Jobs    []*work.Job
	Cursors []int64
}

func (v Registered) apply(a *Agenda) {
	for i, j := range v.Jobs {
		s := a.states[j]
		if s == nil || s.removed {
			continue // it was removed meanwhile
		}
		s.unclaimable = false
		if !s.claiming {
			a.reschedule(s, v.Cursors[i], 0)
		}
	}
}
func (Registered) afterEnd(*Slots) {}

// Displaced are jobs of which another definition is known to be stored.
type Displaced struct{ Jobs []*work.Job }

func (v Displaced) apply(a *Agenda) {
	for _, j := range v.Jobs {
		if s := a.states[j]; s != nil && !s.unclaimable {
			s.unclaimable = true
			a.queue.drop(&s.tick)
			a.Listener.Superseded(j.Name, work.Displaced)
		}
	}
}
func (Displaced) afterEnd(*Slots) {}

// Changed are jobs that were added to the node, and jobs that were removed. Other roles learn of an
// added job after the agenda, and of a removed one before.
type Changed struct{ Added, Removed []*work.Job }

func (v Changed) apply(a *Agenda) {
	a.remove(v.Removed)
	for _, j := range v.Added {
		a.add(j)
	}
}
func (Changed) afterEnd(*Slots) {}

// Settled are reports of runs of this node that were answered together, and the slots that they
// held.
type Settled struct {
	Reports []settle.Report
	Slots   int
}

func (v Settled) apply(a *Agenda) {
	v.afterEnd(a.Slots)
	for _, r := range v.Reports {
		a.leaveToOthers(r)
		a.freed(a.byName[r.Job])
	}
}

func (v Settled) afterEnd(s *Slots) { s.release(v.Slots) }

// Reaped are jobs of which another node's run was reaped.
type Reaped struct{ Jobs []*work.Job }

func (v Reaped) apply(a *Agenda) {
	for _, j := range v.Jobs {
		a.freed(a.states[j])
	}
}
func (Reaped) afterEnd(*Slots) {}

// SlotsFreed are slots that became free without a report: of a run that was handed back, or of a
// call to a master that is unreachable.
type SlotsFreed struct{ Slots int }

func (v SlotsFreed) apply(a *Agenda)   { v.afterEnd(a.Slots) }
func (v SlotsFreed) afterEnd(s *Slots) { s.release(v.Slots) }

// OwnOnly makes the agenda drop the work that it would only take over from other nodes.
type OwnOnly struct{}

func (OwnOnly) apply(a *Agenda) { a.ownOnly() }
func (OwnOnly) afterEnd(*Slots) {}

// own notes the jobs, and the shards, that this node owns.
func (a *Agenda) own(owned map[*work.Job]bool, shards map[*work.Job][]int) {
	now := a.Clock.Now()
	for _, j := range a.order {
		j.ownShards = shards[j.Job]
		if j.owned == owned[j.Job] {
			continue
		}
		j.owned = owned[j.Job]
		if j.claiming || j.unclaimable {
			continue // the answer, or the registration, brings the cursor
		}
		// Only the ledger has the cursor. A guess behind it is answered stale; the sweep corrects a
		// guess ahead of it.
		if j.owned && j.Schedule != nil && j.cursor < now.UnixMilli() {
			j.cursor = work.Millis(j.Schedule.Next(now))
		}
		a.reschedule(j, j.cursor, 0)
	}
}

// freed notes the end of a run, and claims at once the job's next waiting run or tick. Otherwise a
// run by hand of a busy job would always come too late, and a node that works off another's late
// ticks would wait for a sweep after each. The job's followers are notified at once too.
func (a *Agenda) freed(j *jobState) {
	if j == nil {
		return // it was removed
	}
	if a.Jobs.Followed(j.Name) {
		a.Lanes.Sweep(j.Part)
	}
	j.ends++
	if j.deferred {
		j.deferred, j.tickHeldUntil, j.pendingHeldUntil = false, 0, 0
		if !j.claiming {
			a.reschedule(j, j.cursor, 0)
		}
	}
	late := a.Clock.Now().Sub(time.UnixMilli(j.cursor))
	if a.claimable(j.Name) != nil && !j.owned && j.cursor != 0 && a.Order.Tick(j.Job, j.owned, late) { // the next late tick, without a sweep
		a.queue.put(&j.tick, j.cursor)
	}
}
