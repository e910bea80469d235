package audit

import (
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// unended returns why the recorded end of a run cannot be true; "" when it can. A sharded tick's
// end follows from its shards.
func (t *trial) unended(row *ledger.Row) string {
	if row.IsTick || row.Ranged {
		return ""
	}
	from, to := instant(row.Started), instant(row.At)
	switch row.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed:
		return "" // judged by compare
	case jobs.OutcomeTimedOut:
		if !t.job.any(func(d jobs.Definition) bool { return d.Timeout > 0 }) {
			return "the job has no timeout"
		}
		if least := t.leastTimeout(); to.Sub(from) < least-t.Skew {
			return "it had worked for " + to.Sub(from).String() + ", and may for " + least.String()
		}
	case jobs.OutcomeAbandoned, jobs.OutcomeLost:
		if !t.struck(from, to, row.NodeName, row.Node, false) {
			return "nothing was wrong with its node, nor with Redis, since it was granted"
		}
	case jobs.OutcomeCancelled:
		return t.notCancelled(row, from, to)
	default:
		return "a run does not end like that"
	}
	return ""
}

// notCancelled returns why a run recorded as cancelled cannot have been.
func (t *trial) notCancelled(row *ledger.Row, from, to time.Time) string {
	switch {
	case strings.HasPrefix(row.Reason, "cancelled by"):
		if !slices.ContainsFunc(t.job.Cancelled, func(c Cancel) bool {
			return !c.At.After(to.Add(t.Skew)) && (c.Run == "" || t.comesOf(row, c.Run))
		}) {
			return "nobody had cancelled it"
		}
	case row.Reason == ledger.ReasonReplaced:
		newer := slices.ContainsFunc(t.due, func(d *tick) bool { // since its own tick came due
			return d.at.UnixMilli() != row.Tick && d.ready.UnixMilli() >= row.Tick && !d.soonest.After(to.Add(t.Skew))
		})
		if !newer && !t.Stepped && !t.job.Rewound && !t.forgotten(row.Tick) {
			return "no other tick had come due since"
		}
		if !t.job.any(func(d jobs.Definition) bool { return d.Overlap == jobs.OverlapReplace }) {
			return "the job does not replace its runs"
		}
	case row.Reason == ledger.ReasonStalled:
		least, may := t.leastStall()
		switch {
		case !may:
			return "the job does not end runs without progress"
		case to.Sub(from) < least-t.Skew:
			return "it had worked for " + to.Sub(from).String() + ", and may be without progress for " + least.String()
		}
	case !t.struck(from, to, row.NodeName, row.Node, true):
		return "nobody drained its node, nor was anything wrong with it"
	}
	return ""
}

// comesOf reports whether a row is of the run, of a shard of it, or of the run that continued it
// after a hand-back.
func (t *trial) comesOf(row *ledger.Row, run string) bool {
	ids := make(map[string]bool)
	chain(run, t.job.most(func(d jobs.Definition) int { return d.Shards }), ids)
	return ids[row.Run] || ids[row.TickID]
}

// leastStall returns the shortest stall_after of the job's definitions that cancel a stalled run;
// false where none does.
func (t *trial) leastStall() (least time.Duration, may bool) {
	for _, v := range t.job.Versions {
		if d := v.Definition; d.OnStall == jobs.OnStallCancel {
			after := d.StallAfter
			if !may || after < least {
				least, may = after, true
			}
		}
	}
	return least, may
}

// leastTimeout returns the shortest timeout of the job's definitions, 0 without one.
func (t *trial) leastTimeout() time.Duration {
	least := time.Duration(0)
	for _, v := range t.job.Versions {
		if w := v.Definition.Timeout; w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return least
}
