package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// accounted judges the due ticks one by one.
func (t *trial) accounted() {
	for _, d := range t.due {
		t.started(d)
		t.contradictions(d)
		if len(t.ups) > 0 {
			t.unwanted(d)
		}
		if v := t.verdict(d); v != "" {
			t.report.Verdicts[v]++
			t.report.Ticks++
		}
	}
	t.promised()
}

// attemptOf names an attempt of a shard of a tick.
type attemptOf struct{ shard, attempt int }

// started judges when and how often a tick started.
func (t *trial) started(d *tick) {
	began := make(map[attemptOf]Write)
	for _, w := range d.starts {
		at := attemptOf{w.Shard, max(1, w.Attempt)}
		first, again := began[at]
		if !again {
			began[at] = w
		}
		lag := w.At.Sub(d.ready)
		if at.attempt == 1 {
			t.report.WorstLag = max(t.report.WorstLag, lag)
		}
		switch {
		case again:
			t.add(KindDouble, d.at, "%s, and %s", first, w)
		case w.At.Before(d.at) && t.setBackSince(w):
			t.report.Excused++
		case w.At.Before(d.at):
			t.add(KindEarly, d.at, "%v before its tick: %s", d.at.Sub(w.At), w)
		case at.attempt == 1 && t.late(d, w):
			if t.lossBetween(d.at, w.At) { // the earlier records of it are gone
				t.report.Excused++
				continue
			}
			t.add(KindLate, d.at, "%v after it could start, %v after the last instant for it, with nothing wrong: %s", lag, w.At.Sub(d.deadline), w)
		}
	}
}

// setBackSince reports whether Redis' clock was set back between a run's grant, at most AheadMax
// before its tick, and its start: the node may not have noticed yet, see decision 0025.
func (t *trial) setBackSince(w Write) bool {
	granted, seen := t.firstGrants[w.Run]
	return t.SetBack && seen && w.At.Before(granted) && w.Tick.Sub(granted) <= claim.AheadMax
}

// late reports whether a first attempt started later than any disturbance explains: past its
// deadline when undisturbed, or after the cluster had been calm for long enough.
func (t *trial) late(d *tick, w Write) bool {
	if !w.At.After(d.deadline) || t.Crowded || t.backAndForth() {
		return false
	}
	return !d.excused || len(t.ups) == 0 && !t.Stepped && t.calm(d.turn, w.At, func(at time.Time) time.Time { return t.deadline(at, t.busyBut(d)) })
}

// backAndForth reports whether ticks may be granted out of the order of time.
func (t *trial) backAndForth() bool { return t.job.Rewound || t.upRewound() }

// contradictions judges whether a tick that started is recorded as not run. Ticks recorded twice
// are found by the check of the books.
func (t *trial) contradictions(d *tick) {
	if t.backAndForth() {
		return // judged by the steps of the books
	}
	again := len(t.ups) > 0 && !t.once(d) // an upstream's tick ended more than once
	if len(d.starts) > 0 && len(d.ranges) > 0 && !again {
		t.add(KindContradiction, d.at, "recorded as %s (%s), but %s", d.ranges[0].Outcome, d.ranges[0].Reason, d.starts[0])
	}
	if len(d.starts) == 0 && len(d.ranges) > 1 && !again {
		t.add(KindContradiction, d.at, "recorded as not run %d times, as %s and as %s", len(d.ranges), d.ranges[0].Outcome, d.ranges[1].Outcome)
	}
}

// once reports whether each upstream ended its tick exactly once, so that there is one answer to
// it.
func (t *trial) once(d *tick) bool {
	for _, up := range t.ups {
		if u := up.byTick[d.at.UnixMilli()]; u == nil || up.end(u).attempts != 1 || len(up.job.Reruns) > 0 {
			return false
		}
	}
	return true
}

// verdict returns the verdict of a tick; "" for a possibly due one without a trace.
func (t *trial) verdict(d *tick) Verdict {
	switch {
	case d.shards() > 1 && len(d.ranges) == 0:
		return t.shardVerdict(d)
	case len(d.starts) > 0 && d.starts[0].At.After(d.deadline):
		return Delayed
	case len(d.starts) > 0:
		return Satisfied
	case len(d.ranges) > 0:
		return passedOver(d.ranges[0].Outcome)
	case len(d.rows) > 0:
		return Unstarted
	case len(d.leases) > 0, t.waits(d):
		return Pending
	case !d.must, t.finished(d.at):
		return ""
	case t.trimmed(d.at) || len(t.ups) > 0 && t.trimmed(d.ready):
		return Trimmed
	case t.mayWait(d):
		return Pending // no record yet, and none is required yet
	}
	t.lost(d)
	return Vanished
}

// mayWait reports whether a tick need not be accounted for yet.
func (t *trial) mayWait(d *tick) bool {
	if t.cursorPassed(d.at) {
		return false
	}
	if t.job.Eligible != nil && len(t.job.Eligible) == 0 || t.Crowded {
		return true
	}
	if t.pausedBetween(d.ready, t.Read) || !t.Read.After(d.deadline) {
		return true
	}
	// Without an excuse for a late start, there is none for a missing start.
	return (d.excused || t.backAndForth()) && !t.calm(d.ready, t.Read, func(at time.Time) time.Time { return t.deadline(at, t.busy) })
}

func passedOver(o jobs.Outcome) Verdict {
	switch o {
	case jobs.OutcomeSkipped:
		return Skipped
	case jobs.OutcomeSuperseded:
		return Superseded
	case jobs.OutcomePaused:
		return Paused
	default:
		return Missed
	}
}

// cursorPassed reports whether the cursor has passed an instant.
func (t *trial) cursorPassed(at time.Time) bool {
	if len(t.ups) > 0 || t.books.Entry.Job == "" {
		return false
	}
	cursor := t.books.Entry.Cursor
	return cursor == 0 || instant(cursor).After(at) // 0 stands for no next tick
}

// lost judges a tick without any trace. If Redis lost its memory after the tick, the record may be
// lost too: that excuses a tick for which a good reason may have been recorded. A tick that came
// due when Redis was already gone cannot have had a record.
func (t *trial) lost(d *tick) {
	if t.lossAfter(d.at) && !t.remembered(d.at, false) && (d.excused || t.going(d.ready)) {
		t.report.Excused++
		return
	}
	where := "the cursor has not come to it"
	switch {
	case len(t.ups) > 0:
		where = "the job that it follows had ended it at " + instantText(d.ready)
	case t.cursorPassed(d.at):
		where = "the cursor has passed it"
	}
	t.add(KindLost, d.at, "no start, no record, and %s", where)
}

// going reports whether a run of the job was going at an instant, or ended so shortly before that
// its report may have been under way, or started so shortly after that it may have been granted
// before.
func (t *trial) going(at time.Time) bool {
	for _, s := range t.busy {
		if !s.From.After(at.Add(t.Within)) && !s.Until.Add(t.Within).Before(at) {
			return true
		}
	}
	return false
}

// promised checks that each run requested by hand exists.
func (t *trial) promised() {
	for _, a := range t.job.Asked {
		if a.Run == "" || t.lossy(a.At, t.Read) || t.trimmed(a.At) { // a request that Redis lost is not restored
			continue
		}
		there := slices.ContainsFunc(t.books.Rows, func(r ledger.Row) bool { return r.Request == a.Run || r.Run == a.Run }) ||
			slices.ContainsFunc(t.books.Open, func(l ledger.Run) bool { return l.Request == a.Run || l.ID == a.Run })
		if !there {
			t.add(KindLost, time.Time{}, "run %s was promised at %s, and there is none", a.Run, instantText(a.At))
		}
	}
}
