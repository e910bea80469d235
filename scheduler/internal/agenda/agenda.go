// Package agenda decides what a node asks for, and when: ticks that are due, or will be in a moment, runs that wait for a node,
// and shards of open ticks.
//
// One goroutine owns all of it. It hears of the world through its Inbox, sends batches of claims to Redis' side, takes up
// their answers; what was granted is with the runner by then.
package agenda

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// lookAgain bounds the agenda's sleep, so that a step of Redis' clock is noticed.
const lookAgain = time.Second

// shutPause is how long a job is put off at least from whose partition nothing is claimed; longer as it becomes late, because
// there may be many.
const shutPause = 100 * time.Millisecond

// Clock is Redis' clock as the node believes it.
type Clock interface {
	Now() time.Time
	// Past is an instant that Redis' clock has certainly reached: a claim sent for it does not come early.
	Past() time.Time
	// Usable is nil when the node may claim by this clock.
	Usable() error
}

// Lanes take claims to Redis, and say what may not be asked for now.
type Lanes interface {
	// Claim takes a batch. It does not block: there is room for as many as there are slots.
	Claim(b *work.Batch)
	// Sweep has a partition looked at soon: a run has ended that other jobs follow. It does not block.
	Sweep(part int)
	// Holding is why nothing may be claimed, besides the clock; nil when something may.
	Holding() error
	// Shut says whether nothing is claimed from a partition.
	Shut(part int) bool
}

// Turns says whether this node may take what is late by so much: who goes first for it may at once, others in their turn.
type Turns interface {
	Tick(j *work.Job, first bool, late time.Duration) bool
	Shard(j *work.Job, shard int, first bool, late time.Duration) bool
}

// Listener is told what the agenda does. It does not block.
type Listener interface {
	Due(job string, tick int64)
	Missed(job string, p ledger.SkippedRange)
	Superseded(job, why string)
}

// Registrar is told of jobs that cannot be claimed until they are registered again. It does not block.
type Registrar interface{ Rejected(j *work.Job, why string) }

// Config is what an agenda needs.
type Config struct {
	Jobs      *work.Jobs
	Clock     Clock
	Slots     *Slots
	Inbox     *Inbox
	Lanes     Lanes
	Turns     Turns
	Listener  Listener
	Registrar Registrar
	Answers   <-chan *work.Batch // from the lanes
	Ahead     time.Duration      // how long before they are due ticks are asked for; negative: when they are, 0: it is measured
	NewID     func() string      // for runs
	Log       *slog.Logger
}

// Agenda is what the node will ask for. Only Run's goroutine touches it.
type Agenda struct {
	Config
	states map[*work.Job]*state // also of jobs that were removed while they are asked for
	order  []*state             // of the jobs that the node has
	byName map[string]*state
	queue  queue
	lead   lead

	open     []*work.Batch // being filled, one a partition and in their order
	inflight int           // batches that were sent and not answered

	waiting map[string]*candidate // pending runs and shards, by run
	full    fullness
	// When it was said last that a job waits for room in the ledger.
	saidNoRoom time.Time
}

// New makes an agenda of jobs that are not registered yet.
func New(c Config) *Agenda {
	e := &Agenda{
		Config: c, states: make(map[*work.Job]*state, c.Jobs.Len()), byName: make(map[string]*state, c.Jobs.Len()), lead: lead{fixed: c.Ahead},
		waiting: make(map[string]*candidate),
	}
	for _, j := range c.Jobs.All() {
		e.add(j)
	}
	return e
}

// Run claims what is due until ctx ends; then it waits for the claims in flight and returns.
func (e *Agenda) Run(ctx context.Context) {
	defer close(e.Inbox.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(e.fire())
		select {
		case <-ctx.Done():
			for e.inflight > 0 {
				select {
				case b := <-e.Answers:
					e.hear(b)
				case ev := <-e.Inbox.events: // nobody is to wait for a drain, the roster's beat least of all
					ev.take(e)
				}
			}
			return
		case <-timer.C:
		case ev := <-e.Inbox.events:
			ev.take(e)
		case b := <-e.Answers:
			e.hear(b)
		}
	}
}

// fire asks for what is due while slots are free and says how long the agenda may sleep.
func (e *Agenda) fire() time.Duration {
	now := e.Clock.Past()
	if e.Clock.Usable() != nil || e.Lanes.Holding() != nil {
		return lookAgain / 10
	}
	for c := e.queue.next(now.UnixMilli()); c != nil && e.ask(c, now); {
		c = e.queue.next(now.UnixMilli())
	}
	for _, b := range e.open {
		e.send(b)
	}
	e.open = slices.Delete(e.open, 0, len(e.open))
	return e.queue.wait(now, lookAgain)
}

// ask claims a candidate that is due, or takes it out of the way; false when there is no slot for it.
func (e *Agenda) ask(c *candidate, now time.Time) bool {
	j, shut := c.job, e.Lanes.Shut(c.job.Part)
	switch {
	case c.kind != tick && (shut || j.outside):
		e.forget(c) // the next sweep finds it again
	case shut:
		late := now.Sub(time.UnixMilli(j.cursor))
		e.queue.put(c, now.Add(min(lookAgain, max(shutPause, late/10))).UnixMilli())
	case c.kind == pending && j.claiming:
		e.queue.drop(c) // one of a job at a time: the answer brings it back
	case !e.take():
		return false
	case c.kind != tick:
		e.claim(c, pendingClaim(j, c.run, now), startUntil(j, c.run))
	default:
		e.claimTick(c, now.UnixMilli())
	}
	return true
}

// fullness is since when what is due has found no slot.
type fullness struct{ since, last, said time.Time }

const sayAgain = 10 * time.Second

// take takes a slot for what is due, and says when there has been none for long: functions that do not end, even when their contexts have,
// look from outside as if nothing were due.
func (e *Agenda) take() bool {
	if e.Slots.take() {
		e.full = fullness{}
		return true
	}
	f, now := &e.full, time.Now()
	if now.Sub(f.last) > 2*lookAgain { // another node took what was due then
		f.since, f.said = now, now
	}
	if f.last = now; now.Sub(f.said) >= sayAgain {
		f.said = now
		e.Log.Warn("nothing is claimed: all slots are taken by runs that have not ended; see max_running, and what they wait for",
			"slots", e.Slots.size, "for", now.Sub(f.since).Round(time.Millisecond))
	}
	return false
}
