package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Event is what another role has to tell the agenda.
type Event interface {
	// take takes it up, in the agenda's goroutine.
	take(e *Agenda)
	// late does what is left to do when the agenda has ended.
	late(s *Slots)
}

// Inbox carries events to the agenda.
type Inbox struct {
	slots  *Slots
	events chan Event
	done   chan struct{} // closed when the agenda has ended
}

// NewInbox makes the inbox of the agenda that has these slots.
func NewInbox(s *Slots) *Inbox {
	return &Inbox{slots: s, events: make(chan Event), done: make(chan struct{})}
}

// Tell waits until the agenda takes an event up, or has ended.
func (b *Inbox) Tell(e Event) {
	select {
	case b.events <- e:
	case <-b.done:
		e.late(b.slots)
	}
}

// Found is what a sweep of some partitions found overdue or waiting.
type Found struct {
	ledger.ScanResult
	Parts []int
}

func (v Found) take(e *Agenda) { e.consider(v) }
func (Found) late(*Slots)      {}

// Owned is for which jobs the node goes first from now on, and for which of their shards.
type Owned struct {
	Jobs   map[*work.Job]bool
	Shards map[*work.Job][]int
}

func (v Owned) take(e *Agenda) { e.own(v.Jobs, v.Shards) }
func (Owned) late(*Slots)      {}

// Registered are jobs whose definitions are the stored ones, and their cursors, ms.
type Registered struct {
	Jobs    []*work.Job
	Cursors []int64
}

func (v Registered) take(e *Agenda) {
	for i, j := range v.Jobs {
		s := e.states[j]
		if s == nil || s.gone {
			continue // it was removed meanwhile
		}
		s.outside = false
		if !s.claiming {
			e.again(s, v.Cursors[i], 0)
		}
	}
}
func (Registered) late(*Slots) {}

// Displaced are jobs of which it is known already that another definition is stored.
type Displaced struct{ Jobs []*work.Job }

func (v Displaced) take(e *Agenda) {
	for _, j := range v.Jobs {
		if s := e.states[j]; s != nil && !s.outside {
			s.outside = true
			e.queue.drop(&s.tick)
			e.Listener.Superseded(j.Name, work.Displaced)
		}
	}
}
func (Displaced) late(*Slots) {}

// Changed are jobs that the node has from now on, before its other roles know of them, and jobs that it has no more.
type Changed struct{ In, Out []*work.Job }

func (v Changed) take(e *Agenda) {
	for _, j := range v.Out {
		e.remove(j)
	}
	for _, j := range v.In {
		e.add(j)
	}
}
func (Changed) late(*Slots) {}

// Settled are runs that have ended here, all that were reported together: their jobs are free, and the slots that they still held.
type Settled struct {
	Reports []ledger.Report
	Slots   int
}

func (v Settled) take(e *Agenda) {
	v.late(e.Slots)
	for _, r := range v.Reports {
		e.freed(e.byName[r.Job])
	}
}

func (v Settled) late(s *Slots) { s.give(v.Slots) }

// Reaped are jobs of which another node's run has been ended.
type Reaped struct{ Jobs []*work.Job }

func (v Reaped) take(e *Agenda) {
	for _, j := range v.Jobs {
		e.freed(e.states[j])
	}
}
func (Reaped) late(*Slots) {}

// Freed are slots that are free: of a run that was handed back, or of what waits for a master that does not answer.
type Freed struct{ Slots int }

func (v Freed) take(e *Agenda) { v.late(e.Slots) }
func (v Freed) late(s *Slots)  { s.give(v.Slots) }

// Shed says that the node is to take nothing more of what it would take only because others have not.
type Shed struct{}

func (Shed) take(e *Agenda) { e.shed() }
func (Shed) late(*Slots)    {}

// own takes up for which jobs this node goes first, and for which of their shards.
func (e *Agenda) own(owned map[*work.Job]bool, shards map[*work.Job][]int) {
	now := e.Clock.Now()
	for _, j := range e.order {
		j.mine = shards[j.Job]
		if j.owned == owned[j.Job] {
			continue
		}
		j.owned = owned[j.Job]
		if j.claiming || j.outside {
			continue // its answer, or its registration, brings the cursor
		}
		// What the cursor is now, only the ledger knows: a guess that lies behind is answered
		// with the truth, and one that lies ahead is put right by the sweep.
		if j.owned && j.Schedule != nil && j.cursor < now.UnixMilli() {
			j.cursor = work.Millis(j.Schedule.Next(now))
		}
		e.again(j, j.cursor, 0)
	}
}

// freed takes up the end of a run: what had waited for the job is asked for at once. Else a run by hand of
// a busy job would come too late every time, and a node that works off late ticks of another's job would
// hardly get ahead. Jobs that follow it are looked after at once as well.
func (e *Agenda) freed(j *state) {
	if j == nil {
		return // it was removed
	}
	if e.Jobs.Followed(j.Name) {
		e.Lanes.Sweep(j.Part)
	}
	j.ends++
	if j.waited {
		j.waited, j.heldUntil, j.putOff = false, 0, 0
		if !j.claiming {
			e.again(j, j.cursor, 0)
		}
	}
	late := e.Clock.Now().Sub(time.UnixMilli(j.cursor))
	if e.idle(j.Name) != nil && !j.owned && j.cursor != 0 && e.Turns.Tick(j.Job, j.owned, late) { // the next late tick, without waiting for a sweep
		e.queue.put(&j.tick, j.cursor)
	}
}
