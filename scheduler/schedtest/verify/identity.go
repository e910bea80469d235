package verify

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

// identity goes through the due ticks one by one: what became of each, by its name.
func (t *trial) identity() {
	for _, d := range t.due {
		t.starts(d)
		t.contradictions(d)
		if v := t.verdict(d); v != "" {
			t.report.Verdicts[v]++
			t.report.Ticks++
		}
	}
}

// starts judges when and how often a tick started.
func (t *trial) starts(d *tick) {
	began := make(map[int]Write) // by shard
	for _, w := range d.starts {
		lag := w.At.Sub(d.at)
		first, again := began[w.Shard]
		if !again {
			began[w.Shard] = w
		}
		t.report.WorstLag = max(t.report.WorstLag, lag)
		switch {
		case again:
			t.faulty++
			t.add(KindDouble, d.at, "%s, and %s", first, w)
		case lag < 0:
			t.faulty++
			t.add(KindEarly, d.at, "%v before its tick: %s", -lag, w)
		case w.At.After(d.deadline) && !d.excused:
			t.faulty++
			t.add(KindLate, d.at, "%v after its tick, %v after the last instant for it, with nothing wrong: %s", lag, w.At.Sub(d.deadline), w)
		}
	}
}

// contradictions judges how often a tick is recorded. Runs that started twice are a double; that
// both stand in the books is no further fault.
func (t *trial) contradictions(d *tick) {
	if d.shards() > 1 {
		t.shardContradictions(d)
		return
	}
	records := len(d.rows) + len(d.ranges) + len(d.leases)
	runs := 0
	for i, w := range d.starts {
		if !slices.ContainsFunc(d.starts[:i], func(x Write) bool { return x.Run == w.Run }) {
			runs++
		}
	}
	switch {
	case runs > 0 && len(d.ranges) > 0:
		t.add(KindContradiction, d.at, "recorded as %s (%s), but %s", d.ranges[0].Outcome, d.ranges[0].Reason, d.starts[0])
	case records > max(1, runs):
		t.add(KindContradiction, d.at, "recorded %d times: %d runs that ended, %d rows of ticks that did not run, %d runs in flight; %d runs started",
			records, len(d.rows), len(d.ranges), len(d.leases), runs)
	}
}

// verdict says what became of a tick; "" for one that need not have been due and left no trace.
func (t *trial) verdict(d *tick) Verdict {
	switch {
	case d.shards() > 1:
		return t.shardVerdict(d)
	case len(d.starts) > 0 && d.starts[0].At.After(d.deadline):
		return Delayed
	case len(d.starts) > 0:
		return Satisfied
	case len(d.ranges) > 0:
		return passedOver(d.ranges[0].Outcome)
	case len(d.rows) > 0:
		return Unstarted
	case len(d.leases) > 0:
		return Pending
	case !d.must:
		return ""
	case d.at.Before(t.Books.TrimmedBefore[t.job.Name]):
		return Trimmed
	case !t.cursorPassed(d.at) && (!t.Read.After(d.deadline) || !t.calm(d.at, func(at time.Time) time.Time { return t.deadline(at, t.busy) })):
		return Pending // nobody has answered for it, and nobody has to have by now
	}
	t.lost(d)
	return Vanished
}

func passedOver(o jobs.Outcome) Verdict {
	switch o {
	case jobs.OutcomeSkipped:
		return Skipped
	case jobs.OutcomeSuperseded:
		return Superseded
	default:
		return Missed
	}
}

// cursorPassed says whether the ledger regards an instant as accounted for.
func (t *trial) cursorPassed(at time.Time) bool {
	cursor, known := t.Books.Cursor[t.job.Name]
	return known && (!cursor.After(time.Unix(0, 0)) || cursor.After(at)) // 0 ms is the ledger's word for none
}

// lost is a tick of which there is nothing. If Redis lost its memory after it, the record went with
// it; that excuses a tick for which a good reason can have been recorded.
func (t *trial) lost(d *tick) {
	if t.lossAfter(d.at) && (d.excused || t.going(d.at)) {
		t.report.Excused++
		return
	}
	where := "the cursor has not come to it"
	if t.cursorPassed(d.at) {
		where = "the cursor has passed it"
	}
	t.add(KindLost, d.at, "no start, no record, and %s", where)
}

// going says whether the sink saw a run of the job going at an instant, or ending so shortly before that its
// report may have been under way, or starting so shortly after that it may have been granted before.
func (t *trial) going(at time.Time) bool {
	for _, s := range t.busy {
		if !s.From.After(at.Add(t.Within)) && !s.Until.Add(t.Within).Before(at) {
			return true
		}
	}
	return false
}
