package agenda

import (
	"errors"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// reply is the answer to one claim of a batch. Its verdict is 0 when the batch has no answers.
type reply struct {
	*candidate
	claim  claim.Claim
	answer claim.Answer
	batch  *work.Batch
}

// takeAnswers handles a batch that came back.
func (a *Agenda) takeAnswers(b *work.Batch) {
	a.inflight--
	a.lead.answered(a.inflight, b)
	a.answers.count(b)
	for i, j := range b.Jobs {
		s := a.states[j]
		r := reply{candidate: &s.tick, claim: b.Claims[i], batch: b}
		if r.claim.Pending {
			r.candidate = a.waiting[r.claim.Run]
		}
		if b.Err == nil {
			r.answer = b.Answers[i]
		}
		if !b.SlotsFreed && (b.Err != nil || !b.Started[i]) { // else the run has the slot
			a.Slots.release(1)
		}
		r.inFlight = false
		if r.kind == shard || r.kind == pending && r.answer.Verdict != claim.JobBusy {
			a.forget(r.candidate)
		}
		cursor, delay := a.verdict(r)
		if r.kind != shard {
			r.job.claiming = false
			a.reschedule(r.job, cursor, delay)
		}
		a.countAnswers(s, 1)
	}
	if len(a.rejected) > 0 {
		a.Registrar.Rejected(a.rejected)
		a.rejected = nil
	}
}

// verdict handles the answer to a claim. It returns the job's cursor and how long to wait before
// the next claim from there. The next sweep finds shards again that have to wait.
func (a *Agenda) verdict(r reply) (cursor int64, delay time.Duration) {
	j, c, answer := r.job, r.claim, r.answer
	if cursor = answer.Cursor; r.kind != tick {
		cursor = j.cursor
	}
	switch answer.Verdict {
	case 0:
		if !errors.Is(r.batch.Err, work.ErrNotSent) { // else it was too old to be sent, and is planned anew
			delay = time.Second
		}
		return j.cursor, delay
	case claim.Granted: // the runner has it already
		if r.kind == tick {
			a.reportSkipped(j, c.Skipped)
			j.windows.busy = ledger.Window{} // it belongs to the last run
			j.refused, cursor = 0, c.Next
		}
	case claim.Opened:
		a.opened(r)
	case claim.Skipped:
		a.reportSkipped(j, append(c.Skipped, ledger.SkippedRange{
			Outcome: jobs.OutcomeSkipped, Reason: ledger.ReasonOverlap, First: c.Tick, Last: c.Tick, Count: 1, Next: c.Next,
		}))
	case claim.RecordedOnly:
		switch {
		case r.kind != tick:
			c.Skipped = []ledger.SkippedRange{recorded(c, answer)}
		case answer.Detail == ledger.ReasonMaxRuns:
			a.Log.Info("the job has no more ticks: max_runs of them have been run", "job", j.Name, "max_runs", j.MaxRuns)
			c.Skipped = nil
		}
		a.reportSkipped(j, c.Skipped)
	case claim.Stale:
		if r.kind == tick {
			delay = a.replan(r)
		}
	case claim.Early:
		due := time.UnixMilli(max(c.Tick, j.cursor)).Sub(a.Clock.Now()) - claim.AheadMax
		return j.cursor, max(time.Millisecond, min(due, maxSleep))
	case claim.JobBusy:
		return j.cursor, a.held(r)
	case claim.Superseded:
		a.reject(j, work.Superseded, "")
	case claim.Closed:
		a.reject(j, work.Sealed, answer.Detail)
	case claim.Unknown:
		a.reject(j, work.NotStored, "")
	default:
		a.reject(j, work.UnknownFormat, "")
	}
	return cursor, delay
}

// The first claim of a sharded job's tick opens the tick. From then on its shards are pending runs.
// Every owner of a shard claims the tick when it is due. The answer says only that the
// tick is open, and the node claims its own shards at once. The sweep finds the shards of nodes
// that do not claim, and the other nodes take them in turn.

// opened notes that a tick is open, and queues this node's shards of it.
func (a *Agenda) opened(r reply) {
	j, c, id := r.job, r.claim, r.answer.Detail
	if r.kind == tick {
		if id == c.Run { // this claim opened it
			a.reportSkipped(j, c.Skipped)
		}
		j.windows.busy = ledger.Window{}
	}
	now, trigger := a.Clock.Now().UnixMilli(), ""
	if r.kind == pending {
		trigger = r.run.Trigger
	}
	room := min(len(j.ownShards), max(0, pendingMax-len(a.queue.heaps[shard]))) // the sweep finds the rest
	for _, n := range j.ownShards[:room] {
		a.addPending(j, &ledger.Run{ID: claim.ShardRun(id, n), Job: j.Name, Tick: c.Tick, Shard: n, Shards: j.Shards, TickID: id, Granted: now, Trigger: trigger})
	}
}

// recorded is the range for a pending run that was recorded instead of run.
func recorded(c claim.Claim, a claim.Answer) ledger.SkippedRange {
	outcome, reason, _ := strings.Cut(a.Detail, ",")
	p := ledger.SkippedRange{Reason: reason, First: c.Tick, Last: c.Tick, Count: 1}
	_ = p.Outcome.UnmarshalText([]byte(outcome)) // one of the outcomes that the script records
	return p
}

// replan notes the cursor and the windows of the ledger's answer. It returns how long to wait. If
// the node had them already, the plan was at fault and is not repeated at once; or the claim only
// checked whether an earlier one had been granted.
func (a *Agenda) replan(r reply) (delay time.Duration) {
	j, answer := r.job, r.answer
	now := windows{pause: answer.Pause, busy: answer.Busy}
	if answer.Cursor == j.cursor && now == j.windows {
		if !r.batch.Unanswered {
			j.refused++
		}
		delay = min(heldPause, time.Duration(max(1, j.refused))*50*time.Millisecond)
	} else {
		j.refused = 0
	}
	if j.refused == 20 {
		a.Log.Error("the ledger refuses this node's plan for the job, though both agree on its cursor; the nodes may differ in version or in time zone data",
			"job", j.Name, "cursor", time.UnixMilli(j.cursor).UTC())
	}
	j.windows = now
	return delay
}

// reportSkipped logs ranges of ticks that were recorded as not run, and reports them to the
// listener.
func (a *Agenda) reportSkipped(j *jobState, passes []ledger.SkippedRange) {
	for _, p := range passes {
		a.Log.Info("ticks not run", "job", j.Name, "tick", time.UnixMilli(p.First).UTC(), "until", time.UnixMilli(p.Last).UTC(),
			"count", p.Count, "outcome", p.Outcome.String(), "reason", p.Reason)
		a.Listener.Skipped(j.Name, p)
	}
}
