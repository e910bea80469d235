package scheduler

import (
	"errors"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// heldPause is the longest wait before something that waits for a held job is asked for again.
const heldPause = 2 * time.Second

// hear acts on a batch that came back.
func (e *engine) hear(b *batch) {
	e.inflight--
	for i, j := range b.jobs {
		b.crowded = b.lent && !e.slots.reclaim()
		if b.claims[i].Shard {
			e.shardVerdict(j, b, i)
			continue
		}
		j.claiming = false
		if b.err != nil {
			e.slots.give()
			pause := time.Second
			if errors.Is(b.err, errNotSent) {
				pause = 0 // it was too old to be sent as it was, and is asked anew as things are now
			}
			e.again(j, j.cursor, pause)
			continue
		}
		e.verdict(j, b.claims[i], b.answers[i], b)
	}
}

func (e *engine) verdict(j *job, c ledger.Claim, a ledger.Answer, b *batch) {
	if a.Verdict == ledger.Granted {
		e.grant(j, c, a, b)
		return
	}
	e.slots.give()
	switch a.Verdict {
	case ledger.Opened:
		e.opened(j, c, a)
	case ledger.Skipped:
		e.passed(j, append(c.Passes, ledger.Pass{
			Outcome: jobs.OutcomeSkipped, Reason: ledger.ReasonOverlap, First: c.Tick, Last: c.Tick, Count: 1, Next: c.Next,
		}))
		e.again(j, a.Cursor, 0)
	case ledger.Passed:
		if c.Pending {
			e.passed(j, []ledger.Pass{recorded(c, a)})
			e.again(j, j.cursor, 0)
			return
		}
		e.passed(j, c.Passes)
		e.again(j, a.Cursor, 0)
	case ledger.Moved:
		if c.Pending {
			e.again(j, j.cursor, 0)
			return
		}
		e.replan(j, a, b.unanswered)
	case ledger.Early:
		due := time.UnixMilli(max(c.Tick, j.cursor)).Sub(e.clock.now())
		e.again(j, j.cursor, max(time.Millisecond, min(due, lookAgain)))
	case ledger.Held:
		if c.Pending && a.Detail == ledger.HeldByPause {
			e.asleep[c.Run] = e.clock.now().Add(heldPause).UnixMilli() // it alone; others of the job may go on
			e.again(j, j.cursor, 0)
			return
		}
		e.held(j, c, a.Detail)
	case ledger.Superseded:
		e.expel(j, superseded)
	case ledger.Closed:
		e.expel(j, sealed)
	case ledger.Unknown:
		e.expel(j, vanished)
	default:
		e.expel(j, foreign)
	}
}

// recorded is what became of a pending run that was recorded instead of run.
func recorded(c ledger.Claim, a ledger.Answer) ledger.Pass {
	outcome, reason, _ := strings.Cut(a.Detail, ",")
	p := ledger.Pass{Reason: reason, First: c.Tick, Last: c.Tick, Count: 1}
	_ = p.Outcome.UnmarshalText([]byte(outcome)) // one of the words that Pass knows
	return p
}

// replan takes up what the ledger says of a job whose cursor or windows are other ones than this node
// believed. When it knew all that, the claim was at fault, and is not repeated at once; or it was merely asked about at last, for it had
// not been answered.
func (e *engine) replan(j *job, a ledger.Answer, asked bool) {
	now, delay := outlook{pause: a.Pause, busy: a.Busy}, time.Duration(0)
	if a.Cursor == j.cursor && now == j.outlook {
		if !asked {
			j.refused++
		}
		delay = min(heldPause, time.Duration(max(1, j.refused))*50*time.Millisecond)
	} else {
		j.refused = 0
	}
	if j.refused == 20 {
		e.log.Error("the ledger refuses what this node plans for the job, though both believe the same; another version or other time zone data?",
			"job", j.Name, "cursor", time.UnixMilli(j.cursor).UTC())
	}
	j.outlook = now
	e.again(j, a.Cursor, delay)
}

// grant takes up a granted run.
func (e *engine) grant(j *job, c ledger.Claim, a ledger.Answer, b *batch) {
	//guard:grant-heard-once P1 a pending run whose grant is heard of twice is begun once
	if c.Pending && !e.news(c.Run, a.Token) {
		e.slots.give()
		e.again(j, j.cursor, 0)
		return
	}
	j.refused = 0
	if c.Pending {
		e.again(j, j.cursor, 0)
	} else {
		e.passed(j, c.Passes)
		j.outlook.busy = ledger.Window{} // its last run's; this one begins another
		e.again(j, c.Next, 0)
	}
	e.begin(j, c, a, b)
}

// begin hands a grant to the runner.
func (e *engine) begin(j *job, c ledger.Claim, a ledger.Answer, b *batch) {
	l := c.Lease(a, e.by, e.clock.now().UnixMilli())
	e.events.claimed(l)
	g := grant{job: j, lease: l, server: b.server, asked: since(b, c, a), slept: b.slept}
	if b.crowded {
		g.back = "its grant was heard of when others had all slots"
	}
	//guard:confirm-hands-back P1 a run that too few replicas know of is not begun, if confirmation is asked for
	if a.Unconfirmed != nil {
		g.back = "too few replicas have its grant"
	}
	e.granted(g)
}

// takenFor is how long a grant of a pending run is known again, at least: much longer than a reply is under way.
const takenFor = time.Minute

// news says whether the grant of a pending run is heard of for the first time. A sweep that looked before
// the grant has the engine ask once more, and the same node is given the same grant, which it may hear of when
// the run has ended.
func (e *engine) news(run string, token locking.Token) bool {
	if now := time.Now(); e.taken == nil || now.Sub(e.turned) > takenFor {
		e.before, e.taken, e.turned = e.taken, make(map[string]locking.Token), now
	}
	if e.taken[run] == token || e.before[run] == token {
		return false
	}
	e.taken[run] = token
	return true
}

// passed says which ticks were recorded as not run.
func (e *engine) passed(j *job, passes []ledger.Pass) {
	for _, p := range passes {
		e.log.Info("ticks not run", "job", j.Name, "tick", time.UnixMilli(p.First).UTC(), "until", time.UnixMilli(p.Last).UTC(),
			"count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
		e.events.missed(j.Name, p)
	}
}

// since is the instant from which a granted lease's ttl counts: before its first request was sent.
// A pending run keeps its id, so the grant may be one that an earlier batch asked for, whose answer
// never came; then what is left of the lease tells.
func since(b *batch, c ledger.Claim, a ledger.Answer) time.Time {
	if left := b.sent.Add(a.Left - c.TTL); left.Before(b.asked) {
		return left
	}
	//guard:granted-from-request P4 the lease counts from before the first request, not from the one that was answered
	if b.asked.Before(b.sent) {
		return b.asked
	}
	return b.sent
}

// held puts a claim off until the run that holds the job may have ended: soon for what is only a
// little late, so that late ticks run in order, rarely for what has waited long. Pending runs and ticks
// do not put each other off.
func (e *engine) held(j *job, c ledger.Claim, holder string) {
	e.sayNoRoom(j, holder)
	now, due := e.clock.now(), c.Tick
	if c.Pending {
		due = j.pendingSince
	}
	wait := min(heldPause, max(50*time.Millisecond, now.Sub(time.UnixMilli(due))/10))
	j.waited = true
	if j.ends != j.ended {
		wait = time.Millisecond // the run that held it has ended here since it was asked
	}
	if c.Pending {
		j.holder = holder
		j.putOff = now.Add(wait).UnixMilli()
		e.again(j, j.cursor, 0)
		return
	}
	j.heldUntil = now.Add(wait).UnixMilli()
	e.again(j, j.cursor, wait)
}

// settled is told of runs that have ended here, all that were reported together: their slots are free, unless they were lent
// before, and their jobs.
func (e *engine) settled(reports []ledger.Report, lent bool) {
	give := func() {
		if lent {
			e.slots.forgo(len(reports))
			return
		}
		for range reports {
			e.slots.give()
		}
	}
	running := e.do(func() {
		give()
		for _, r := range reports {
			e.freed(e.byName[r.Job])
		}
	})
	if !running {
		give()
	}
}

// returned takes back the slot of a run that was handed back, unless it was lent before.
func (e *engine) returned(lent bool) {
	give := e.slots.give
	if lent {
		give = func() { e.slots.forgo(1) }
	}
	if !e.do(give) {
		give()
	}
}

// freed is told of the end of a run: what had waited for the job is asked for at once. Else a run by hand of
// a busy job would come too late every time, and a node that works off late ticks of another's job would
// hardly get ahead. Jobs that follow it are looked after at once as well.
func (e *engine) freed(j *job) {
	if j.followed {
		signal(e.relay)
	}
	j.ends++
	waited := j.waited
	j.waited = false
	if waited {
		j.heldUntil, j.putOff = 0, 0
	}
	switch late := e.clock.now().Sub(time.UnixMilli(j.cursor)); {
	case j.claiming || j.outside:
	case waited && j.owned:
		e.again(j, j.cursor, 0)
	case !j.owned && j.cursor != 0 && e.mayTake(j, late): // the next late tick, without waiting for a sweep
		e.agenda.put(j, j.cursor)
	}
}

// expel stops claiming a job until it is registered again.
func (e *engine) expel(j *job, why string) {
	if j.outside {
		return // it is told already, by the answer to another of its shards
	}
	j.outside = true
	e.agenda.drop(j)
	if why == superseded {
		e.events.superseded(j.Name, why)
	}
	e.expelled(j, why)
}

// again notes a job's cursor and, if this node goes first, when to look at it: when the cursor
// is due, but not before delay is over.
func (e *engine) again(j *job, cursor int64, delay time.Duration) {
	if j.schedule == nil {
		cursor = 0 // it follows another job
	}
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
