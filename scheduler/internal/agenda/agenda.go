// Package agenda decides which claims a node sends, and when. It claims ticks that are due, or will
// be within the claim-ahead time, pending runs, and shards of open ticks.
//
// One goroutine owns all its state. Other roles reach it through the Inbox. The agenda sends
// batches of claims to the lanes and reads the answers; the runs that were granted have been
// started by then.
package agenda

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// maxSleep bounds the agenda's sleep, so that it notices a step of Redis' clock.
const maxSleep = time.Second

// blockedDelay is the shortest time until the agenda looks again at a tick of a blocked partition.
// The delay grows as the tick becomes late, because many jobs may be waiting.
const blockedDelay = 100 * time.Millisecond

// Clock estimates Redis' time.
type Clock interface {
	Now() time.Time
	// Past is an instant that Redis' clock has certainly reached. A claim sent for it is never
	// early.
	Past() time.Time
	// Usable returns nil when the node may claim by this clock.
	Usable() error
}

// Lanes carry claims to Redis.
type Lanes interface {
	// Claim sends a batch. It does not block: a lane has room for as many batches as the node has
	// slots.
	Claim(b *work.Batch)
	// Sweep requests an early sweep of a partition, because a job with followers has ended a run.
	// It does not block.
	Sweep(part int)
	// Holding returns why nothing may be claimed, apart from the clock; nil when claims are
	// allowed.
	Holding() error
	// Blocked reports whether nothing is claimed from a partition.
	Blocked(part int) bool
}

// TakeoverOrder reports whether this node may take late work. The work's owner may take it
// at once, the other nodes in the order of their rank.
type TakeoverOrder interface {
	Tick(j *work.Job, first bool, late time.Duration) bool
	Shard(j *work.Job, shard int, first bool, late time.Duration) bool
}

// Listener receives the agenda's events. Its methods do not block.
type Listener interface {
	Due(job string, tick int64)
	Skipped(job string, p ledger.SkippedRange)
	Superseded(job, why string)
}

// Registrar receives jobs that cannot be claimed until they are registered again, all jobs of one
// batch at once. It does not block.
type Registrar interface{ Rejected(all []work.Rejection) }

// Config holds the dependencies of an agenda.
type Config struct {
	Jobs      *work.Jobs
	Clock     Clock
	Slots     *Slots
	Inbox     *Inbox
	Lanes     Lanes
	Order     TakeoverOrder
	Listener  Listener
	Registrar Registrar
	Answers   <-chan *work.Batch // from the lanes
	MaxSkew   time.Duration      // how far Clock may be from Redis' clock
	Ahead     time.Duration      // how long before it is due a tick is claimed; negative: not before; 0: measured
	NewID     func() string      // makes the ids of runs
	Log       *slog.Logger
}

// Agenda holds the jobs, pending runs and shards that the node may claim. Only Run's goroutine
// touches it.
type Agenda struct {
	Config
	states map[*work.Job]*jobState // a removed job stays until its claims are answered
	order  []*jobState             // the node's jobs, as they were added
	byName map[string]*jobState
	queue  queue
	lead   lead

	open     []*work.Batch    // batches that are being filled, by partition
	inflight int              // batches that were sent and are not answered
	rejected []work.Rejection // by the batch whose answers are being handled

	waiting        map[string]*candidate // pending runs and shards, by run
	retryElsewhere map[string]time.Time  // runs that other nodes are to take first, and until when that is remembered
	shortage       slotShortage
	answers        answerCounts // the one part that other goroutines read
	loggedFull     time.Time    // when a lack of room in the ledger was last logged
}

// New makes an agenda. None of its jobs is registered yet.
func New(c Config) *Agenda {
	a := &Agenda{
		Config: c, states: make(map[*work.Job]*jobState, c.Jobs.Len()), byName: make(map[string]*jobState, c.Jobs.Len()), lead: lead{fixed: c.Ahead},
		waiting: make(map[string]*candidate), retryElsewhere: make(map[string]time.Time),
	}
	for _, j := range c.Jobs.All() {
		a.add(j)
	}
	return a
}

// Run sends claims until ctx ends. Then it waits for the claims in flight and returns.
func (a *Agenda) Run(ctx context.Context) {
	defer close(a.Inbox.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(a.fire())
		select {
		case <-ctx.Done():
			for a.inflight > 0 {
				select {
				case b := <-a.Answers:
					a.takeAnswers(b)
				case ev := <-a.Inbox.events: // no sender waits for the drain, least of all the heartbeat
					ev.apply(a)
				}
			}
			return
		case <-timer.C:
		case ev := <-a.Inbox.events:
			ev.apply(a)
		case b := <-a.Answers:
			a.takeAnswers(b)
		}
	}
}

// fire claims due work while slots are free. It returns how long the agenda may sleep.
func (a *Agenda) fire() time.Duration {
	now := a.Clock.Past()
	if a.Clock.Usable() != nil || a.Lanes.Holding() != nil {
		return maxSleep / 10
	}
	for c := a.queue.next(now.UnixMilli()); c != nil && a.ask(c, now); {
		c = a.queue.next(now.UnixMilli())
	}
	for _, b := range a.open {
		a.send(b)
	}
	a.open = slices.Delete(a.open, 0, len(a.open))
	return a.queue.wait(now, maxSleep)
}

// ask claims a candidate that is due, or puts it off. It returns false when no slot is free.
func (a *Agenda) ask(c *candidate, now time.Time) bool {
	j, blocked := c.job, a.Lanes.Blocked(c.job.Part)
	switch {
	case c.kind != tick && (blocked || j.unclaimable):
		a.forget(c) // the next sweep finds it again
	case blocked:
		late := now.Sub(time.UnixMilli(j.cursor))
		a.queue.put(c, now.Add(min(maxSleep, max(blockedDelay, late/10))).UnixMilli())
	case c.kind == pending && j.claiming:
		a.queue.drop(c) // one claim of a job at a time; the answer queues the run again
	case !a.takeSlot():
		return false
	case c.kind != tick:
		a.claim(c, pendingClaim(j, c.run, now), j.StartBy(c.run))
	default:
		a.claimTick(c, now.UnixMilli())
	}
	return true
}

// slotShortage records since when due work has found no slot.
type slotShortage struct{ since, last, logged time.Time }

const logEvery = 10 * time.Second

// takeSlot takes a slot, and logs a shortage that lasts. Functions that never return look from outside
// as if nothing were due.
func (a *Agenda) takeSlot() bool {
	//guard:suspended-takes-nothing P2 a node whose machine cannot begin runs leaves them to others
	if a.Slots.suspended(time.Now()) {
		return false
	}
	if a.Slots.take() {
		a.shortage = slotShortage{}
		return true
	}
	f, now := &a.shortage, time.Now()
	if now.Sub(f.last) > 2*maxSleep { // another node took that work meanwhile
		f.since, f.logged = now, now
	}
	if f.last = now; now.Sub(f.logged) >= logEvery {
		f.logged = now
		a.Log.Warn("nothing is claimed: all slots hold runs that have not ended; raise max_running, or find out why these runs do not end",
			"slots", a.Slots.size, "for", now.Sub(f.since).Round(time.Millisecond))
	}
	return false
}
