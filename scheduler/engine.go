package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// lookAgain bounds the engine's sleep, so that a step of Redis' clock is noticed.
const lookAgain = time.Second

// shutPause is how long a job is put off at least from whose partition nothing is claimed; longer as it becomes late, because
// there may be many.
const shutPause = 100 * time.Millisecond

// engine decides what to claim and when. One goroutine owns all of its state; other roles hand
// it work through do.
type engine struct {
	clock  *clock
	slots  *slots
	log    *slog.Logger
	newID  func() string   // for runs
	jobs   []*job          // in a fixed order, as byName has none
	byName map[string]*job // never changed
	agenda agenda

	open     []*batch      // being filled, one a partition and in their order
	batches  chan *batch   // to the senders; never full, for each claim holds a slot
	answers  chan *batch   // from the senders
	calls    chan func()   // from other roles
	done     chan struct{} // closed when run returns
	inflight int           // batches with the senders

	events   *events
	granted  func(grant)        // starts a run, or hands it back when the node drains
	relay    chan struct{}      // the sweep's, see sweep.now
	expelled func(*job, string) // a job cannot be claimed until it is registered again
	pending  []ledger.Lease     // runs that wait for a slot, oldest first; as the last sweep found them
	asleep   map[string]int64   // pending runs that a pause holds: when to ask again, ms; no more than were found
	shards   []ledger.Lease     // shards of open ticks that wait for a slot; at most pendingMax
	asking   map[string]bool    // those whose claims are in flight; each has a slot, or lent it
	mayTake  func(*job, time.Duration) bool
	full     trouble // that what is due finds no slot
	// saidNoRoom is when it was said last that a job waits for room in the ledger.
	saidNoRoom time.Time
	// shardLast says that what was claimed last, when there was a choice, was a shard.
	shardLast bool
	// holding says why nothing may be claimed now, besides the clock, and shut of which partitions nothing is.
	holding func() error
	shut    func(part int) bool
	by      ledger.Claimer
	// mayShard is mayTake for a shard of an open tick.
	mayShard func(*job, int, time.Duration) bool

	// The pending runs that this node was granted lately, since turned and in the time before.
	taken, before map[string]locking.Token
	turned        time.Time
}

// batch is up to ledger.BatchMax claims of one partition, on their way to Redis or back.
type batch struct {
	part   int
	jobs   []*job
	claims []ledger.Claim
	made   time.Time
	asked  time.Time     // before the first request was sent; zero when none was
	sent   time.Time     // before the request that was answered was sent
	slept  time.Duration // the machine's suspended time at that instant
	server string        // that was asked last, its run_id
	// copied is when the last request was sent that can be granted, and unanswered says that one was not answered.
	copied     time.Time
	unanswered bool
	// lent says that its claims lent their slots to others while it waited, and crowded of the one that hear is at that others have
	// its slot.
	lent, crowded bool
	answers       []ledger.Answer
	err           error
}

// grant is a granted run on its way to its function.
type grant struct {
	job    *job
	lease  ledger.Lease
	server string    // that granted it
	back   string    // why the run is not begun but handed back; "": it is begun
	asked  time.Time // before the first request for it was sent
	slept  time.Duration
}

func newEngine(c *clock, s *slots, all []*job, newID func() string, log *slog.Logger) *engine {
	e := &engine{
		clock: c, slots: s, log: log, newID: newID, jobs: all, byName: make(map[string]*job, len(all)), asleep: make(map[string]int64),
		asking: make(map[string]bool), holding: func() error { return nil }, shut: func(int) bool { return false },
		batches: make(chan *batch, s.size), answers: make(chan *batch), calls: make(chan func()), done: make(chan struct{}),
	}
	for _, j := range all {
		j.outside = true // until it is registered
		e.byName[j.Name] = j
	}
	return e
}

// do runs f in the engine's goroutine, soon; false when the engine has ended, and then f is dropped.
func (e *engine) do(f func()) bool {
	select {
	case e.calls <- f:
		return true
	case <-e.done:
		return false
	}
}

// run claims what is due until ctx ends; then it waits for the claims in flight, closes the
// senders' channel and returns.
func (e *engine) run(ctx context.Context) {
	defer close(e.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(e.fire())
		select {
		case <-ctx.Done():
			close(e.batches)
			for e.inflight > 0 {
				select {
				case b := <-e.answers:
					e.hear(b)
				case f := <-e.calls: // nobody is to wait for a drain, the roster's beat least of all
					f()
				}
			}
			return
		case <-timer.C:
		case f := <-e.calls:
			f()
		case b := <-e.answers:
			e.hear(b)
		}
	}
}

// fire claims every job that is due while slots are free and says how long the engine may sleep.
func (e *engine) fire() time.Duration {
	if e.clock.usable() != nil || e.holding() != nil {
		return lookAgain / 10
	}
	now := e.clock.past()
	e.firePending(now)
	for e.fireNext(now) {
	}
	wait := lookAgain
	if j := e.agenda.first(); j != nil {
		if due := time.UnixMilli(j.at).Sub(now); due > 0 {
			wait = min(wait, due)
		} // else it waits for a slot, and a run's end wakes the engine
	}
	for _, b := range e.open {
		e.send(b)
	}
	e.open = slices.Delete(e.open, 0, len(e.open))
	return wait
}

// fireNext claims the next due tick, or the next shard that waits: when there are both, by turns, so that a job
// with more shards than the node has slots does not put off everybody else's ticks, nor they its shards. False
// when there is neither, or no slot.
func (e *engine) fireNext(now time.Time) bool {
	j := e.agenda.first()
	due := j != nil && j.at <= now.UnixMilli()
	if due && e.shut(j.part) {
		late := now.Sub(time.UnixMilli(j.cursor))
		e.agenda.put(j, now.Add(min(lookAgain, max(shutPause, late/10))).UnixMilli())
		return true
	}
	if !due && len(e.shards) == 0 || !e.take() {
		return false
	}
	if len(e.shards) > 0 && !(due && e.shardLast) {
		e.shardLast = true
		if !e.fireShard(now) {
			e.slots.give()
		}
		return true
	}
	e.shardLast = false
	e.agenda.take()
	c := tickClaim(j, e.newID(), now.UnixMilli())
	if c.Tick != 0 {
		e.events.due(j.Name, c.Tick)
	}
	e.claim(j, c)
	return true
}

// take takes a slot for what is due, and says when there has been none for long: functions that do not end, even when their contexts have,
// look from outside as if nothing were due.
func (e *engine) take() bool {
	if e.slots.take() {
		e.full = trouble{}
		return true
	}
	if time.Since(e.full.last) > 2*lookAgain {
		e.full = trouble{} // another node took what was due then
	}
	if e.full.again(errFull) && time.Since(e.full.since) >= sayAgain {
		e.log.Warn("nothing is claimed: all slots are taken by runs that have not ended; see max_running, and what they wait for",
			"slots", e.slots.size, "for", time.Since(e.full.since).Round(time.Millisecond))
	}
	return false
}

var errFull = errors.New("all slots are taken")

// tickClaim is the claim for a job's due cursor.
func tickClaim(j *job, run string, now int64) ledger.Claim {
	// Redis' clock has come to the end of what it calls busy, whatever this node believes.
	s := plan(j.Job, j.schedule, j.cursor, j.outlook, max(now, j.outlook.busy.To-1))
	c := claimOf(j, run)
	c.From, c.Passes, c.Tick, c.Next, c.Trigger = j.cursor, s.passes, s.tick, s.next, s.trigger
	return c
}

// claimOf is what all claims of a job have in common.
func claimOf(j *job, run string) ledger.Claim {
	return ledger.Claim{
		Job: j.Name, Digest: j.digest, Run: run, TTL: j.TTL, Overlap: j.Overlap, Attempts: j.attempts(), Shards: j.Shards, Params: j.Params,
	}
}

// claim puts a claim into its partition's batch. The caller has taken a slot for it.
func (e *engine) claim(j *job, c ledger.Claim) {
	if c.Shard {
		e.asking[c.Run] = true
	} else {
		j.claiming, j.ended = true, j.ends
	}
	at, filling := slices.BinarySearchFunc(e.open, j.part, func(b *batch, part int) int { return b.part - part })
	if !filling {
		e.open = slices.Insert(e.open, at, &batch{part: j.part, made: time.Now()})
	}
	b := e.open[at]
	b.jobs, b.claims = append(b.jobs, j), append(b.claims, c)
	if len(b.claims) == ledger.BatchMax {
		e.open = slices.Delete(e.open, at, at+1)
		e.send(b)
	}
}

// send gives a batch that is open no more to the senders.
func (e *engine) send(b *batch) {
	e.inflight++
	e.batches <- b
}

// lend lends slots of what waits for a silent master to others.
func (e *engine) lend(n int) {
	lend := func() { e.slots.lend(n) }
	if !e.do(lend) {
		lend()
	}
}

// own tells the engine for which jobs this node goes first, and for which of their shards.
func (e *engine) own(owned map[*job]bool, shards map[*job][]int) {
	now := e.clock.now()
	for _, j := range e.jobs {
		j.mine = shards[j]
		if j.owned == owned[j] {
			continue
		}
		j.owned = owned[j]
		if j.claiming || j.outside {
			continue // its answer, or its registration, brings the cursor
		}
		// What the cursor is now, only the ledger knows: a guess that lies behind is answered
		// with the truth, and one that lies ahead is put right by the sweep.
		if j.owned && j.schedule != nil && j.cursor < now.UnixMilli() {
			j.cursor = millis(j.schedule.Next(now))
		}
		e.again(j, j.cursor, 0)
	}
}

// registered takes up a job whose definition is the stored one, from its cursor on.
func (e *engine) registered(j *job, cursor int64) {
	j.outside = false
	if !j.claiming {
		e.again(j, cursor, 0)
	}
}

// newID is a uuid v7, so ids sort by time of making.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
