package verify

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// compare holds the books against the sink: each run that started has its record, and each one that
// is recorded as having ended on its own has its lines.
func (t *trial) compare() {
	for _, r := range t.runs {
		if len(r.starts) > 0 {
			t.recorded(r, r.starts[0])
		}
	}
	for i, row := range t.rows {
		r := t.byID[row.Run]
		if second := t.byID[regrant(row.Run, row.Token)]; second != nil && second.at == i {
			r = second
		}
		switch {
		case row.Ranged || row.Whole:
		case len(r.starts) == 0 && (row.Outcome == jobs.OutcomeSucceeded || row.Outcome == jobs.OutcomeFailed || row.Outcome == jobs.OutcomeTimedOut):
			t.add(KindBooks, instant(row.Tick), "run %s on %s is recorded as %s and never started", row.Run, row.NodeName, row.Outcome)
		case row.Outcome == jobs.OutcomeSucceeded && r.end == nil && !t.job.StartsOnly:
			t.add(KindBooks, instant(row.Tick), "run %s on %s is recorded as succeeded and never ended", row.Run, row.NodeName)
		}
	}
	t.sharded()
	for _, l := range t.open {
		if l.Whole {
			continue // its shards are looked at
		}
		enough := t.settled
		if l.Pending() { // it may wait for the runs of its job, as a tick may
			enough = func(at time.Time) time.Time { return latest(t.settled(at), t.deadline(at, t.busy)) }
		}
		if age := t.Read.Sub(instant(l.Granted)); age > t.Settle && !instant(l.Until).After(t.Read) && t.calm(instant(l.Granted), enough) {
			t.add(KindBooks, instant(l.Tick), "run %s, granted %v before the books were read, is still in flight", l.Run, age)
		}
	}
}

// recorded compares a start with its record. There may be none where Redis lost its memory since, or
// where the history does not reach back.
func (t *trial) recorded(r *run, w Write) {
	var tick, token int64
	var node string
	var shard, shards int
	switch {
	case r.row != nil:
		tick, token, node = r.row.Tick, r.row.Token, r.row.NodeName
		shard, shards = r.row.Shard, r.row.Shards
	case r.lease != nil:
		tick, token, node = r.lease.Tick, r.lease.Token, r.lease.NodeName
		shard, shards = r.lease.Shard, r.lease.Shards
	case t.lossAfter(w.At) || trimmed(t.Books.TrimmedBefore[t.job.Name], w):
		return
	default:
		t.add(KindBooks, w.Tick, "no record of %s", w)
		return
	}
	if tick != w.Tick.UnixMilli() || token != w.Token || node != w.Node {
		t.add(KindBooks, w.Tick, "run %s is recorded with tick %s token %d on %s, but %s", r.id, stamp(instant(tick)), token, node, w)
	} else if shard != w.Shard || max(1, shards) != max(1, w.Shards) {
		t.add(KindBooks, w.Tick, "run %s is recorded as shard %d of %d, but %s", r.id, shard, shards, w)
	}
}

func trimmed(before time.Time, w Write) bool { return w.Tick.Before(before) }
