package agenda

import (
	"errors"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/scheduler/ledger"
)

// reply is one claim of a batch that came back. Without an answer its verdict is "".
type reply struct {
	job    *state
	claim  ledger.Claim
	answer ledger.Answer
	batch  *work.Batch
	begun  bool // its run has the slot
}

// hear acts on a batch that came back.
func (e *Agenda) hear(b *work.Batch) {
	e.inflight--
	e.lead.answered(e.inflight, b)
	for i, j := range b.Jobs {
		r := reply{job: e.states[j.Index], claim: b.Claims[i], batch: b}
		if r.claim.Shard {
			delete(e.asking, r.claim.Run)
		} else {
			r.job.claiming = false
		}
		if b.Err != nil {
			e.unanswered(r)
			continue
		}
		r.answer, r.begun = b.Answers[i], b.Begun[i]
		e.verdict(r)
	}
}

// unanswered puts off what was not answered.
func (e *Agenda) unanswered(r reply) {
	if !r.batch.Freed {
		e.Slots.give(1)
	}
	pause := time.Second
	if errors.Is(r.batch.Err, work.ErrNotSent) {
		pause = 0 // it was too old to be sent as it was, and is asked anew as things are now
	}
	e.rearm(r, r.job.cursor, pause)
}

// verdict acts on the answer to a claim. What of shards another node was granted, or what has to wait, the sweep finds again or not.
func (e *Agenda) verdict(r reply) {
	j, c, a := r.job, r.claim, r.answer
	if !r.begun && !r.batch.Freed {
		e.Slots.give(1)
	}
	switch a.Verdict {
	case ledger.Granted:
		e.grant(r)
	case ledger.Opened:
		e.opened(j, c, a)
	case ledger.Skipped:
		e.passed(j, append(c.Passes, ledger.Pass{
			Outcome: jobs.OutcomeSkipped, Reason: ledger.ReasonOverlap, First: c.Tick, Last: c.Tick, Count: 1, Next: c.Next,
		}))
		e.rearm(r, a.Cursor, 0)
	case ledger.Passed:
		if c.Pending {
			e.passed(j, []ledger.Pass{recorded(c, a)})
			e.rearm(r, j.cursor, 0)
			return
		}
		e.passed(j, c.Passes)
		e.rearm(r, a.Cursor, 0)
	case ledger.Moved:
		if c.Pending {
			e.rearm(r, j.cursor, 0)
			return
		}
		e.replan(r)
	case ledger.Early:
		due := time.UnixMilli(max(c.Tick, j.cursor)).Sub(e.Clock.Now()) - ledger.AheadMax
		e.rearm(r, j.cursor, max(time.Millisecond, min(due, lookAgain)))
	case ledger.Held:
		if !c.Shard {
			e.held(r)
		}
	case ledger.Superseded:
		e.expel(j, work.Superseded)
	case ledger.Closed:
		e.expel(j, work.Sealed)
	case ledger.Unknown:
		e.expel(j, work.Vanished)
	default:
		e.expel(j, work.Foreign)
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
func (e *Agenda) replan(r reply) {
	j, a := r.job, r.answer
	now, delay := outlook{pause: a.Pause, busy: a.Busy}, time.Duration(0)
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
	e.rearm(r, a.Cursor, delay)
}

// grant takes up a granted run, which is with the runner.
func (e *Agenda) grant(r reply) {
	j, c := r.job, r.claim
	if c.Pending {
		e.rearm(r, j.cursor, 0)
		return
	}
	e.passed(j, c.Passes)
	j.outlook.busy = ledger.Window{} // its last run's; this one begins another
	j.refused = 0
	e.rearm(r, c.Next, 0)
}

// passed says which ticks were recorded as not run.
func (e *Agenda) passed(j *state, passes []ledger.Pass) {
	for _, p := range passes {
		e.Log.Info("ticks not run", "job", j.Name, "tick", time.UnixMilli(p.First).UTC(), "until", time.UnixMilli(p.Last).UTC(),
			"count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
		e.Listener.Missed(j.Name, p)
	}
}
