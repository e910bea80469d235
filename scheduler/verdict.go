package scheduler

import (
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// heldPause is the longest wait before something that waits for a held job is asked for again.
const heldPause = 2 * time.Second

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
		e.granted(grant{job: j, lease: a.Run, asked: since(b, c, a), slept: b.slept})
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
		e.held(j, c)
	case ledger.Superseded:
		e.expel(j, superseded)
	case ledger.Unknown:
		e.expel(j, vanished)
	default:
		e.expel(j, foreign)
	}
}

// since is the instant from which a granted lease's ttl counts: before its first request was sent.
// A pending run keeps its id, so the grant may be one that an earlier batch asked for, whose answer
// never came; then what is left of the lease tells.
func since(b *batch, c ledger.Claim, a ledger.Answer) time.Time {
	if left := b.sent.Add(a.Left - c.TTL); left.Before(b.asked) {
		return left
	}
	return b.asked
}

// held puts a claim off until the run that holds the job may have ended: soon for what is only a
// little late, so that late ticks run in order, rarely for what has waited long. Pending runs and ticks
// do not put each other off.
func (e *engine) held(j *job, c ledger.Claim) {
	now, due := e.clock.now(), c.Tick
	if c.Pending {
		due = j.pendingSince
	}
	wait := min(heldPause, max(50*time.Millisecond, now.Sub(time.UnixMilli(due))/10))
	j.waited.Store(true)
	if c.Pending {
		j.putOff = now.Add(wait).UnixMilli()
		e.again(j, j.cursor, 0)
		return
	}
	j.heldUntil = now.Add(wait).UnixMilli()
	e.again(j, j.cursor, wait)
}

// freed is told of the end of a run of a job that others had waited for: they are asked for at once.
// Else a run by hand of a busy job would come too late every time.
func (e *engine) freed(j *job) {
	if !j.waited.Swap(false) {
		return
	}
	e.do(func() {
		j.heldUntil, j.putOff = 0, 0
		if !j.claiming {
			e.again(j, j.cursor, 0)
		}
	})
}

// expel stops claiming a job until it is registered again.
func (e *engine) expel(j *job, why string) {
	j.outside = true
	e.agenda.drop(j)
	e.expelled(j, why)
}

// again notes a job's cursor and, if this node goes first, when to look at it: when the cursor
// is due, but not before delay is over.
func (e *engine) again(j *job, cursor int64, delay time.Duration) {
	j.cursor = cursor
	if !j.owned || j.outside || cursor == 0 {
		e.agenda.drop(j)
		return
	}
	at := cursor
	if delay > 0 {
		at = max(at, e.clock.now().Add(delay).UnixMilli())
	}
	e.agenda.put(j, at)
}
