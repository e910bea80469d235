package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// othersFirst is for how long other nodes alone may take an attempt that failed on this node, after
// the grace.
const othersFirst = 3 * time.Second

// forgetRetries is when the agenda forgets an attempt that it left to other nodes.
const forgetRetries = time.Minute

// leaveToOthers notes the next attempt of a run that failed here and that another node is to try.
// It is a hint, which a restarted node does not have.
func (a *Agenda) leaveToOthers(r settle.Report) {
	if r.RetryIn > 0 {
		a.retryElsewhere[ledger.NextAttemptID(r.Run)] = a.Clock.Now().Add(r.RetryIn + forgetRetries)
	}
}

// mayRetry reports whether this node may take a pending run that has waited for so long. This node
// retries its own failed attempt only after the other nodes' turns, even as the job's owner:
// rather than never.
func (a *Agenda) mayRetry(j *jobState, p *ledger.Run, late time.Duration) bool {
	if _, failed := a.retryElsewhere[p.ID]; !failed {
		return true
	}
	if p.TickID != "" {
		return a.Order.Shard(j.Job, p.Shard, false, late-othersFirst)
	}
	return a.Order.Tick(j.Job, false, late-othersFirst)
}

// forgetOld drops the attempts that have long been taken.
func (a *Agenda) forgetOld(now time.Time) {
	for run, until := range a.retryElsewhere {
		if now.After(until) {
			delete(a.retryElsewhere, run)
		}
	}
}
