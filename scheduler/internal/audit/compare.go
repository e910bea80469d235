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

// compare compares the books with the writes: each run that started has a record, and each run with
// a recorded end of its own has lines.
func (t *trial) compare() {
	for _, r := range t.runs {
		if len(r.starts) > 0 {
			t.recorded(r, r.starts[0])
		}
	}
	for i := range t.books.Rows {
		if row := &t.books.Rows[i]; !row.Ranged && !row.IsTick {
			if r := t.known(row.Run); r.row == row {
				t.confirmed(r)
			} else if other := t.byID[regrant(row.Run, row.Token)]; other != nil && other.row == row {
				t.confirmed(other)
			}
		}
	}
	for i := range t.books.Open {
		t.stillOpen(&t.books.Open[i])
	}
}

// confirmed compares a run's recorded end with its writes.
func (t *trial) confirmed(r *run) {
	row, n := r.row, len(r.ends)
	switch row.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut:
	default:
		return
	}
	at := instant(row.Tick)
	switch {
	case len(r.starts) == 0 && row.Outcome == jobs.OutcomeTimedOut && t.struck(instant(row.Started), at.Add(t.Settle), row.NodeName, row.Node, false):
		// its time was over before its function was called
	case len(r.starts) == 0:
		t.add(KindBooks, at, "run %s on %s is recorded as %s and never started", row.Run, row.NodeName, row.Outcome)
	case t.job.StartsOnly || r.refused:
	case row.Outcome == jobs.OutcomeSucceeded && r.going, row.Outcome != jobs.OutcomeTimedOut && n == 0:
		t.add(KindBooks, at, "run %s on %s is recorded as %s and never ended", row.Run, row.NodeName, row.Outcome)
	case row.Outcome == jobs.OutcomeSucceeded && r.ends[n-1].Failed:
		t.add(KindBooks, at, "run %s on %s is recorded as succeeded, and its last try failed", row.Run, row.NodeName)
	case row.Outcome == jobs.OutcomeFailed && n > 0 && !r.going && !r.ends[n-1].Failed && row.Tries == r.ends[n-1].Try:
		t.add(KindBooks, at, "run %s on %s is recorded as failed, and its last try succeeded", row.Run, row.NodeName)
	}
}

// stillOpen checks that a run is not in flight for longer than waiting or a disturbance explains.
func (t *trial) stillOpen(l *ledger.Run) {
	if l.IsOpenTick || l.Pending() && (t.Crowded || t.job.Eligible != nil && len(t.job.Eligible) == 0 || t.pausedBetween(instant(l.Granted), t.Read)) {
		return // its shards are checked; or it waits for a slot, a node, or an operator
	}
	enough := func(since time.Time) time.Time { return since.Add(t.Settle) }
	if l.Pending() { // it may wait for the runs of its job, as a tick may
		settled := enough
		enough = func(at time.Time) time.Time { return latest(settled(at), t.deadline(at, t.busy)) }
	}
	if age := t.Read.Sub(instant(l.Granted)); age > t.Settle && !instant(l.Until).After(t.Read) && t.calm(instant(l.Granted), t.Read, enough) {
		t.add(KindBooks, instant(l.Tick), "run %s, granted %v before the books were read, is still in flight", l.ID, age)
	}
}

// recorded compares a start with its record. The record may be missing where Redis has lost its
// memory since or where the history does not reach back. A run that had waited may be recorded as
// waiting again.
func (t *trial) recorded(r *run, w Write) {
	g, known := r.record()
	switch {
	case !known && (t.lossAfter(w.At) || t.trimmed(w.At.Add(-t.Settle))):
	case known && g.token == 0 && t.lossAfter(w.At): // waits again: Redis has lost the grant
	case !known:
		t.add(KindBooks, w.Tick, "no record of %s", w)
	case g.tick != w.Tick.UnixMilli() || g.token != w.Token || g.node != w.Node || g.attempt != max(1, w.Attempt):
		t.add(KindBooks, w.Tick, "run %s is recorded with tick %s attempt %d token %d on %s, but %s", r.id, instantText(instant(g.tick)), g.attempt, g.token, g.node, w)
	case g.shard != w.Shard || max(1, g.shards) != max(1, w.Shards):
		t.add(KindBooks, w.Tick, "run %s is recorded as shard %d of %d, but %s", r.id, g.shard, g.shards, w)
	}
}
