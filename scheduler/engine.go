package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// lookAgain bounds the engine's sleep, so that a step of Redis' clock is noticed.
const lookAgain = time.Second

// engine decides what to claim and when. One goroutine owns all of its state; other roles hand
// it work through do.
type engine struct {
	clock  *clock
	slots  *slots
	log    *slog.Logger
	byName map[string]*job
	agenda agenda

	open     map[int]*batch // by partition: being filled
	batches  chan *batch    // to the senders; never full, for each claim holds a slot
	answers  chan *batch    // from the senders
	calls    chan func()    // from other roles
	done     chan struct{}  // closed when run returns
	inflight int            // batches with the senders

	granted func(grant)        // starts a run, or hands it back when the node drains
	outside func(*job, string) // a job cannot be claimed until it is registered again
}

// batch is up to ledger.BatchMax claims of one partition, on their way to Redis or back.
type batch struct {
	jobs    []*job
	claims  []ledger.Claim
	made    time.Time
	asked   time.Time     // before the first request was sent; zero when none was
	slept   time.Duration // the machine's suspended time at that instant
	answers []ledger.Answer
	err     error
}

// grant is a granted run on its way to its function.
type grant struct {
	job   *job
	lease ledger.Lease
	asked time.Time // before the first request for it was sent
	slept time.Duration
}

func newEngine(c *clock, s *slots, all []*job, log *slog.Logger) *engine {
	e := &engine{
		clock: c, slots: s, log: log, byName: make(map[string]*job, len(all)), open: make(map[int]*batch),
		batches: make(chan *batch, s.size), answers: make(chan *batch), calls: make(chan func()), done: make(chan struct{}),
	}
	for _, j := range all {
		e.byName[j.Name] = j
	}
	return e
}

// do runs f in the engine's goroutine, soon; it drops f when the engine has ended.
func (e *engine) do(f func()) {
	select {
	case e.calls <- f:
	case <-e.done:
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
				e.hear(<-e.answers)
			}
			return
		case <-timer.C:
		case f := <-e.calls:
			f()
		case b := <-e.answers:
			e.hear(b)
		case <-e.slots.freed:
		}
	}
}

// fire claims every job that is due while slots are free and says how long the engine may sleep.
func (e *engine) fire() time.Duration {
	if e.clock.usable() != nil {
		return lookAgain / 10
	}
	now := e.clock.now()
	wait := lookAgain
	for j := e.agenda.first(); j != nil; j = e.agenda.first() {
		if due := time.UnixMilli(j.at).Sub(now); due > 0 {
			wait = min(wait, due)
			break
		}
		if !e.slots.take() {
			break // slots.freed wakes the engine
		}
		e.agenda.take()
		e.claim(j, tickClaim(j, now.UnixMilli()))
	}
	for part := range e.open {
		e.send(part)
	}
	return wait
}

// tickClaim is the claim for a job's due cursor.
func tickClaim(j *job, now int64) ledger.Claim {
	s := plan(j.schedule, j.cursor, now)
	return ledger.Claim{
		Job: j.Name, Digest: j.digest, Run: newID(), TTL: j.TTL, From: j.cursor,
		Until: s.until, Missed: s.missed, Tick: s.tick, Next: s.next, Trigger: s.trigger,
	}
}

// claim puts a claim into its partition's batch. The caller has taken a slot for it.
func (e *engine) claim(j *job, c ledger.Claim) {
	j.claiming = true
	b := e.open[j.part]
	if b == nil {
		b = &batch{made: time.Now()}
		e.open[j.part] = b
	}
	b.jobs, b.claims = append(b.jobs, j), append(b.claims, c)
	if len(b.claims) == ledger.BatchMax {
		e.send(j.part)
	}
}

func (e *engine) send(part int) {
	e.inflight++
	e.batches <- e.open[part]
	delete(e.open, part)
}

// hear acts on a batch that came back.
func (e *engine) hear(b *batch) {
	e.inflight--
	for i, j := range b.jobs {
		j.claiming = false
		if b.err != nil {
			e.slots.give()
			e.again(j, j.cursor, time.Second)
			continue
		}
		e.verdict(j, b.claims[i], b.answers[i], b)
	}
}

func (e *engine) verdict(j *job, c ledger.Claim, a ledger.Answer, b *batch) {
	if a.Verdict == ledger.Granted {
		if c.Pending {
			e.again(j, j.cursor, 0)
		} else {
			e.again(j, c.Next, 0)
			a.Run = ledger.Lease{Job: j.Name, Tick: c.Tick, Shards: 1, Attempt: 1, TTL: c.TTL.Milliseconds(), Trigger: c.Trigger.String()}
		}
		a.Run.Run, a.Run.Token = c.Run, a.Token
		e.granted(grant{job: j, lease: a.Run, asked: b.asked, slept: b.slept})
		return
	}
	e.slots.give()
	switch a.Verdict {
	case ledger.Skipped:
		e.log.Info("tick skipped", "job", j.Name, "tick", time.UnixMilli(c.Tick).UTC(), "reason", "overlap")
		e.again(j, a.Cursor, 0)
	case ledger.Moved:
		if c.Pending {
			e.again(j, j.cursor, 0)
			return
		}
		e.again(j, a.Cursor, 0)
	case ledger.Early:
		e.again(j, j.cursor, time.Millisecond)
	case ledger.Held:
		e.again(j, j.cursor, 0)
	case ledger.Superseded:
		if !j.superseded {
			e.log.Warn("job superseded: another definition is stored, this node stops claiming it", "job", j.Name,
				"stored", a.Detail, "own", j.digest)
		}
		e.expel(j, superseded)
	case ledger.Unknown:
		e.log.Warn("job vanished from the ledger, registering it again", "job", j.Name)
		e.expel(j, "unknown")
	default:
		e.log.Error("job has a record that this version does not understand; it is left alone, update this node", "job", j.Name)
		e.expel(j, "foreign")
	}
}

// expel stops claiming a job until it is registered again.
func (e *engine) expel(j *job, why string) {
	j.superseded = true
	e.agenda.drop(j)
	e.outside(j, why)
}

// again notes a job's cursor and, if this node goes first, when to look at it: when the cursor
// is due, but not before delay is over.
func (e *engine) again(j *job, cursor int64, delay time.Duration) {
	j.cursor = cursor
	if !j.owned || j.superseded || cursor == 0 {
		e.agenda.drop(j)
		return
	}
	at := cursor
	if delay > 0 {
		at = max(at, e.clock.now().Add(delay).UnixMilli())
	}
	e.agenda.put(j, at)
}

// own tells the engine for which jobs this node goes first.
func (e *engine) own(owned map[*job]bool) {
	now := e.clock.now()
	for _, j := range e.byName {
		if j.owned == owned[j] {
			continue
		}
		j.owned = owned[j]
		if j.claiming {
			continue // its answer brings the cursor
		}
		// What the cursor is now, only the ledger knows: a guess that lies behind is answered
		// with the truth, and one that lies ahead is put right by the sweep.
		if j.owned && j.cursor < now.UnixMilli() {
			j.cursor = millis(j.schedule.Next(now))
		}
		e.again(j, j.cursor, 0)
	}
}

// registered takes up a job whose definition is the stored one, from its cursor on.
func (e *engine) registered(j *job, cursor int64) {
	j.superseded = false
	if !j.claiming {
		e.again(j, cursor, 0)
	}
}

// consider claims what a sweep found: overdue cursors and pending runs, of jobs this node holds.
// mayTake says whether it is this node's turn to take what is late by so much.
func (e *engine) consider(f ledger.Finding, mayTake func(j *job, late time.Duration) bool) {
	now := e.clock.now()
	for _, l := range f.Late {
		j := e.idle(l.Job)
		if j == nil || j.place >= 0 && j.cursor == l.Cursor || !mayTake(j, now.Sub(time.UnixMilli(l.Cursor))) {
			continue
		}
		j.cursor = l.Cursor
		e.agenda.put(j, l.Cursor)
	}
	for _, p := range f.Pending {
		j := e.idle(p.Job)
		if j == nil || !mayTake(j, now.Sub(time.UnixMilli(p.Granted))) || !e.slots.take() {
			continue
		}
		e.agenda.drop(j)
		e.claim(j, ledger.Claim{Job: j.Name, Digest: j.digest, Run: p.Run, TTL: j.TTL, Pending: true, Trigger: jobs.TriggerManual})
	}
}

// idle is the job of that name if this node may claim it now.
func (e *engine) idle(name string) *job {
	j := e.byName[name]
	if j == nil || j.claiming || j.superseded {
		return nil
	}
	return j
}

// newID is a uuid v7, so ids sort by time of making.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
