package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// heldPause is the longest wait before something that waits for a held job is asked for again.
const heldPause = 2 * time.Second

// held says how long a tick waits until the run that holds the job may have ended: not long for what is only a
// little late, so that late ticks run in order, long for what has waited long. Pending runs and ticks do not put each other off.
func (e *Agenda) held(r reply) time.Duration {
	j, now, due := r.job, e.Clock.Now(), r.claim.Tick
	switch {
	case r.kind == shard:
		return 0
	case r.kind == pending && !e.Turns.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(r.run.Granted))):
		e.forget(r.candidate) // the node was drained meanwhile
		return 0
	case r.kind == pending && r.answer.Detail == ledger.HeldByPause:
		r.asleep = now.Add(heldPause).UnixMilli() // it alone; others of the job may go on
		return 0
	case r.kind == pending:
		due = r.run.Granted
	}
	e.sayNoRoom(j, r.answer.Detail)
	wait := min(heldPause, max(50*time.Millisecond, now.Sub(time.UnixMilli(due))/10))
	j.waited = true
	switch at := time.UnixMilli(r.claim.Tick); {
	case j.ends != j.ended:
		wait = time.Millisecond // the run that held it has ended here since it was asked
	case now.Before(at):
		wait = at.Sub(now) // it was asked for ahead
	}
	if r.kind == pending {
		j.wanted, j.holder, j.putOff = now.UnixMilli(), r.answer.Detail, now.Add(wait).UnixMilli()
		return 0
	}
	j.heldUntil = now.Add(wait).UnixMilli()
	return wait
}

// expel stops claiming a job until it is registered again.
func (e *Agenda) expel(j *state, why string) {
	if j.outside {
		return // it is told already, by the answer to another of its shards
	}
	j.outside = true
	e.queue.drop(&j.tick)
	if why == work.Superseded {
		e.Listener.Superseded(j.Name, why)
	}
	e.Registrar.Rejected(j.Job, why)
}

// again offers a job's pending runs, notes its cursor and, if this node goes first, when to look at that: when the cursor
// is due, or will be in a moment, but not before delay is over.
func (e *Agenda) again(j *state, cursor int64, delay time.Duration) {
	if j.outside {
		return
	}
	if j.cursor = cursor; j.Schedule == nil {
		j.cursor = 0 // it follows another job
	}
	for _, c := range j.pending {
		e.offer(c)
	}
	if !j.owned || j.cursor == 0 {
		e.queue.drop(&j.tick)
		return
	}
	at, now := j.cursor, e.Clock.Now()
	if now.UnixMilli()-j.wanted > lookAgain.Milliseconds() { // else the job is left free, when it is, for what somebody wants
		at -= e.lead.time().Milliseconds()
	}
	if delay > 0 {
		at = max(at, now.Add(delay).UnixMilli())
	}
	e.queue.put(&j.tick, at)
}
