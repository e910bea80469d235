package audit

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

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
