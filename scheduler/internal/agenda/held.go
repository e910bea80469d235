package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// heldPause is the longest wait before something that waits for a held job is asked for again.
const heldPause = 2 * time.Second

// held puts a claim off until the run that holds the job may have ended: soon for what is only a
// little late, so that late ticks run in order, rarely for what has waited long. Pending runs and ticks
// do not put each other off.
func (e *Agenda) held(r reply) {
	j, c, holder := r.job, r.claim, r.answer.Detail
	if c.Pending && holder == ledger.HeldByPause {
		r.asleep = e.Clock.Now().Add(heldPause).UnixMilli() // it alone; others of the job may go on
		e.again(j, j.cursor, 0)
		return
	}
	e.sayNoRoom(j, holder)
	now, due := e.Clock.Now(), c.Tick
	if c.Pending {
		due = r.run.Granted
	}
	wait := min(heldPause, max(50*time.Millisecond, now.Sub(time.UnixMilli(due))/10))
	j.waited = true
	if j.ends != j.ended {
		wait = time.Millisecond // the run that held it has ended here since it was asked
	}
	if now.UnixMilli() < c.Tick && j.ends == j.ended {
		wait = time.UnixMilli(c.Tick).Sub(now) // it was asked for ahead
	}
	if c.Pending {
		j.wanted = now.UnixMilli()
		j.holder = holder
		j.putOff = now.Add(wait).UnixMilli()
		e.again(j, j.cursor, 0)
		return
	}
	j.heldUntil = now.Add(wait).UnixMilli()
	e.again(j, j.cursor, wait)
}

// expel stops claiming a job until it is registered again.
func (e *Agenda) expel(j *state, why string) {
	if j.outside {
		return // it is told already, by the answer to another of its shards
	}
	j.outside = true
	e.withdraw(j)
	if why == work.Superseded {
		e.Listener.Superseded(j.Name, why)
	}
	e.Registrar.Expelled(j.Job, why)
}

// rearm is again for the job of a claim; of a shard's claim the job's cursor is not concerned.
func (e *Agenda) rearm(r reply, cursor int64, delay time.Duration) {
	if !r.claim.Shard {
		e.again(r.job, cursor, delay)
	}
}

// again offers a job's pending runs, notes its cursor and, if this node goes first, when to look at that: when the cursor
// is due, or will be in a moment, but not before delay is over.
func (e *Agenda) again(j *state, cursor int64, delay time.Duration) {
	if j.Schedule == nil {
		cursor = 0 // it follows another job
	}
	j.cursor = cursor
	if j.outside {
		return
	}
	for _, c := range j.pending {
		e.offer(c)
	}
	if !j.owned || cursor == 0 {
		e.queue.drop(&j.tick)
		return
	}
	at, now := cursor, e.Clock.Now()
	if now.UnixMilli()-j.wanted > lookAgain.Milliseconds() { // else the job is left free, when it is, for what somebody wants
		at -= e.lead.time().Milliseconds()
	}
	if delay > 0 {
		at = max(at, now.Add(delay).UnixMilli())
	}
	e.queue.put(&j.tick, at)
}
