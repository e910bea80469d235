package agenda

import (
	"errors"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// reply is a candidate's claim that came back. Without an answer its verdict is 0.
type reply struct {
	*candidate
	claim  ledger.Claim
	answer ledger.Answer
	batch  *work.Batch
}

// hear acts on a batch that came back.
func (e *Agenda) hear(b *work.Batch) {
	e.inflight--
	e.lead.answered(e.inflight, b)
	for i, j := range b.Jobs {
		s := e.states[j]
		r := reply{candidate: &s.tick, claim: b.Claims[i], batch: b}
		if r.claim.Pending {
			r.candidate = e.waiting[r.claim.Run]
		}
		if b.Err == nil {
			r.answer = b.Answers[i]
		}
		if !b.Freed && (b.Err != nil || !b.Begun[i]) { // else its run has the slot
			e.Slots.give(1)
		}
		r.asked = false
		if r.kind == shard || r.kind == pending && r.answer.Verdict != ledger.Held {
			e.forget(r.candidate)
		}
		cursor, delay := e.verdict(r)
		if r.kind != shard {
			r.job.claiming = false
			e.again(r.job, cursor, delay)
		}
		e.heard(s, 1)
	}
}

// verdict acts on the answer to a claim, and says where the job's cursor stands now and how long not to ask from there. What of
// shards another node was granted, or what has to wait, the sweep finds again or not.
func (e *Agenda) verdict(r reply) (cursor int64, delay time.Duration) {
	j, c, a := r.job, r.claim, r.answer
	if cursor = a.Cursor; r.kind != tick {
		cursor = j.cursor
	}
	switch a.Verdict {
	case 0:
		if !errors.Is(r.batch.Err, work.ErrNotSent) { // else it was too old to be sent as it was, and is asked anew as things are now
			delay = time.Second
		}
		return j.cursor, delay
	case ledger.Granted: // it is with the runner
		if r.kind == tick {
			e.passed(j, c.Passes)
			j.outlook.busy = ledger.Window{} // its last run's; this one begins another
			j.refused, cursor = 0, c.Next
		}
	case ledger.Opened:
		e.opened(r)
	case ledger.Skipped:
		e.passed(j, append(c.Passes, ledger.SkippedRange{
			Outcome: jobs.OutcomeSkipped, Reason: ledger.ReasonOverlap, First: c.Tick, Last: c.Tick, Count: 1, Next: c.Next,
		}))
	case ledger.Passed:
		if r.kind != tick {
			c.Passes = []ledger.SkippedRange{recorded(c, a)}
		}
		e.passed(j, c.Passes)
	case ledger.Stale:
		if r.kind == tick {
			delay = e.replan(r)
		}
	case ledger.Early:
		due := time.UnixMilli(max(c.Tick, j.cursor)).Sub(e.Clock.Now()) - ledger.AheadMax
		return j.cursor, max(time.Millisecond, min(due, lookAgain))
	case ledger.Held:
		return j.cursor, e.held(r)
	case ledger.Superseded:
		e.expel(j, work.Superseded)
	case ledger.Closed:
		e.expel(j, work.Sealed)
	case ledger.Unknown:
		e.expel(j, work.Vanished)
	default:
		e.expel(j, work.Foreign)
	}
	return cursor, delay
}

// A tick of a sharded job is opened by the first claim of it, whichever node's. From then on its shards are pending
// runs. The nodes that go first for one of them all claim the tick when it is due; each is answered that it is open and
// asks for its own shards at once. Those of nodes that do not ask are found by the sweep, and taken in turn.

// opened takes up that a tick is open: this node's shards of it are asked for before those of others.
func (e *Agenda) opened(r reply) {
	j, c, id := r.job, r.claim, r.answer.Detail
	if r.kind == tick {
		if id == c.Run { // by this very claim
			e.passed(j, c.Passes)
		}
		j.outlook.busy = ledger.Window{}
	}
	now := e.Clock.Now().UnixMilli()
	room := min(len(j.mine), max(0, pendingMax-len(e.queue.heaps[shard]))) // the sweep finds the rest
	for _, n := range j.mine[:room] {
		e.wait(j, &ledger.Lease{Run: ledger.ShardRun(id, n), Job: j.Name, Tick: c.Tick, Shard: n, Shards: j.Shards, Of: id, Granted: now})
	}
}

// recorded is what became of a pending run that was recorded instead of run.
func recorded(c ledger.Claim, a ledger.Answer) ledger.SkippedRange {
	outcome, reason, _ := strings.Cut(a.Detail, ",")
	p := ledger.SkippedRange{Reason: reason, First: c.Tick, Last: c.Tick, Count: 1}
	_ = p.Outcome.UnmarshalText([]byte(outcome)) // one of the words that Pass knows
	return p
}

// replan takes up what the ledger says of a job whose cursor or windows are other ones than this node
// believed, and how long to wait. When it knew all that, the claim was at fault, and is not repeated at once; or it was merely asked about at last, for it had
// not been answered.
func (e *Agenda) replan(r reply) (delay time.Duration) {
	j, a := r.job, r.answer
	now := outlook{pause: a.Pause, busy: a.Busy}
	if a.Cursor == j.cursor && now == j.outlook {
		if !r.batch.Unanswered {
			j.refused++
		}
		delay = min(heldPause, time.Duration(max(1, j.refused))*50*time.Millisecond)
	} else {
		j.refused = 0
	}
	if j.refused == 20 {
		e.Log.Error("the ledger refuses what this node plans for the job, though both believe the same; another version or other time zone data?",
			"job", j.Name, "cursor", time.UnixMilli(j.cursor).UTC())
	}
	j.outlook = now
	return delay
}

// passed says which ticks were recorded as not run.
func (e *Agenda) passed(j *state, passes []ledger.SkippedRange) {
	for _, p := range passes {
		e.Log.Info("ticks not run", "job", j.Name, "tick", time.UnixMilli(p.First).UTC(), "until", time.UnixMilli(p.Last).UTC(),
			"count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
		e.Listener.Missed(j.Name, p)
	}
}
