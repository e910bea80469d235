package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// heldPause is the longest wait before a held job is claimed again.
const heldPause = 2 * time.Second

// held returns how long a claim waits that was answered held. The wait is a tenth of the lateness:
// short at first, so that late ticks run in order. Pending runs and ticks of a job wait
// independently.
func (a *Agenda) held(r reply) time.Duration {
	j, now, due := r.job, a.Clock.Now(), r.claim.Tick
	switch {
	case r.kind == shard:
		return 0
	case r.kind == pending && !a.Order.Tick(j.Job, j.owned, now.Sub(time.UnixMilli(r.run.Granted))):
		a.forget(r.candidate) // the node was drained meanwhile
		return 0
	case r.kind == pending && r.answer.Detail == claim.HeldByPause:
		r.pausedUntil = now.Add(heldPause).UnixMilli() // only this run; other runs of the job may go on
		return 0
	case r.kind == pending:
		due = r.run.Granted
	}
	a.logFull(j, r.answer.Detail)
	wait := min(heldPause, max(50*time.Millisecond, now.Sub(time.UnixMilli(due))/10))
	j.deferred = true
	switch at := time.UnixMilli(r.claim.Tick); {
	case j.ends != j.endsAtClaim:
		wait = time.Millisecond // the holder has ended here after the claim was sent
	case now.Before(at):
		wait = at.Sub(now) // the tick was claimed ahead
	}
	if r.kind == pending {
		j.pendingHeldAt, j.holder, j.pendingHeldUntil = now.UnixMilli(), r.answer.Detail, now.Add(wait).UnixMilli()
		return 0
	}
	j.tickHeldUntil = now.Add(wait).UnixMilli()
	return wait
}

// reject stops claiming a job until it is registered again.
func (a *Agenda) reject(j *jobState, why, detail string) {
	if j.unclaimable { // another shard's answer has rejected the job already
		return
	}
	j.unclaimable = true
	a.queue.drop(&j.tick)
	if why == work.Superseded {
		a.Listener.Superseded(j.Name, why)
	}
	a.rejected = append(a.rejected, work.Rejection{Job: j.Job, Why: why, Detail: detail})
}

// reschedule queues a job's pending runs, notes its cursor, and queues its next tick if this node
// owns the job. The tick is claimed ahead, but not before delay is over.
func (a *Agenda) reschedule(j *jobState, cursor int64, delay time.Duration) {
	if j.unclaimable {
		return
	}
	if j.cursor = cursor; j.Schedule == nil {
		j.cursor = 0 // it follows another job
	}
	for _, c := range j.pending {
		a.enqueue(c)
	}
	if !j.owned || j.cursor == 0 {
		a.queue.drop(&j.tick)
		return
	}
	at, now := j.cursor, a.Clock.Now()
	if now.UnixMilli()-j.pendingHeldAt > maxSleep.Milliseconds() { // else the job is left free for a pending run
		at -= a.lead.time().Milliseconds()
	}
	if delay > 0 {
		at = max(at, now.Add(delay).UnixMilli())
	}
	a.queue.put(&j.tick, at)
}
