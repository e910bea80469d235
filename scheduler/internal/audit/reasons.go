package audit

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// reasons checks that each recorded reason why a tick did not run, or did not end well, is true. A
// tick that started all the same is left out: it is a contradiction.
func (t *trial) reasons() {
	for _, c := range t.ranges {
		if c.row.Outcome == jobs.OutcomeSuperseded && !t.turned(c.row) {
			t.add(KindUntrue, instant(c.row.Tick), "superseded (%s) at %s, when no other version was in sight", c.row.Reason, instantText(instant(c.row.At)))
			continue
		}
		for i, d := range c.ticks {
			if len(d.starts) > 0 {
				continue
			}
			if why := t.untrue(c, d, i == 0); why != "" {
				t.add(KindUntrue, d.at, "%s (%s), recorded at %s: %s", c.row.Outcome, c.row.Reason, instantText(instant(c.row.At)), why)
				break // one finding a row
			}
		}
	}
	for i := range t.books.Rows {
		row := &t.books.Rows[i]
		if why := t.unended(row); !row.Ranged && why != "" {
			t.add(KindUntrue, instant(row.Tick), "run %s on %s %s (%s), recorded at %s: %s",
				row.Run, row.NodeName, row.Outcome, row.Reason, instantText(instant(row.At)), why)
		}
	}
}

// turned reports whether the cursor may have been set anew at a row: two versions met, the cursor
// was rewound, or max_runs was reached.
func (t *trial) turned(row *ledger.Row) bool {
	return row.Reason == ledger.ReasonRewound && t.job.Rewound || t.boundedBy(row) || t.versionsMeet(instant(row.At))
}

// untrue returns why a tick's recorded reason cannot be true; "" when it can.
func (t *trial) untrue(c covered, d *tick, head bool) string {
	at := instant(c.row.At)
	waited := !d.excused && at.After(d.deadline) && !t.Crowded && !t.backAndForth()
	switch c.row.Outcome {
	case jobs.OutcomeMissed:
		return t.notMissed(c.row, d, head, waited)
	case jobs.OutcomeSuperseded:
		if waited && c.row.Reason != ledger.ReasonRewound {
			return "it should have run before, nothing was wrong"
		}
	case jobs.OutcomeSkipped:
		switch {
		case c.row.Reason == ledger.ReasonUpstream && len(t.ups) > 0:
			if came, known := t.came(d); known && came.Ran() && t.wants(came) {
				return "the tick that it follows ended as " + came.String() + ", after which it runs"
			}
		case c.row.Reason != ledger.ReasonOverlap:
			return "a reason that is not known"
		case t.job.all(allows):
			return "its runs are allowed beside each other"
		case !t.held(c, d):
			return "no other run of the job was going"
		case t.waitsForLatest() && !t.dueBetween(d.at, at):
			return "it was the latest that had come due, and waits until the run has ended"
		}
	case jobs.OutcomePaused:
		if !t.pausedAt(d.at, at) {
			return "the job was not paused"
		}
	default:
		return "nothing in this case can cause that"
	}
	return ""
}

// notMissed returns why a tick recorded as missed should not have been; "" when the record is
// right.
func (t *trial) notMissed(row *ledger.Row, d *tick, head, waited bool) string {
	overdue := instant(row.At).Sub(d.soonest)
	def, one := t.oneDefinition()
	none := t.job.all(func(j jobs.Definition) bool { return j.CatchUp == jobs.CatchUpNone })
	switch row.Reason {
	case ledger.ReasonFailover:
		if !t.lossy(d.at, instant(row.At)) {
			return "Redis has lost nothing"
		}
		return ""
	case ledger.ReasonLate:
		if t.job.all(func(j jobs.Definition) bool { return j.CatchUp == jobs.CatchUpAll }) {
			return "the job catches up all"
		}
		if (head || none) && overdue <= t.CatchUp-t.Skew {
			return "it was overdue by " + overdue.String() + " only"
		}
		if one && def.CatchUp == jobs.CatchUpLatest && len(t.ups) == 0 && !t.dueBetween(d.at, instant(row.At)) {
			return "it was the latest, which is run"
		}
	case ledger.ReasonCatchUpMax:
		if !t.job.any(func(j jobs.Definition) bool { return j.CatchUp == jobs.CatchUpAll }) {
			return "the job has no catch_up_max"
		}
		if overdue <= t.CatchUp-t.Skew {
			return "it was overdue by " + overdue.String() + " only"
		}
		if one && t.newer(d.at, instant(row.At).Add(t.Skew)) < def.CatchUpMax {
			return "it was one of the newest, which are run"
		}
	case ledger.ReasonNoNode:
		limit := t.startWithin()
		if limit < 0 {
			limit = ledger.NoNodeGiveUp
		}
		if overdue <= limit-t.Skew {
			return "it was overdue by " + overdue.String() + " only"
		}
	case ledger.ReasonUpstream: // given up before all upstreams had ended it
		if len(t.ups) < 2 {
			return "it does not follow several jobs"
		}
		return ""
	case ledger.ReasonStartWithin:
		switch limit := t.startWithin(); {
		case limit < 0:
			return "the job has no start_within"
		case len(t.ups) == 0 && overdue <= limit-t.Skew:
			return "it was overdue by " + overdue.String() + " only"
		}
	default:
		return "a reason that is not known"
	}
	if waited {
		return "nothing was wrong that kept it from running"
	}
	return ""
}

// startWithin returns the least start_within of the job's definitions, negative for none.
func (t *trial) startWithin() time.Duration {
	limit := time.Duration(-1)
	for _, v := range t.job.Versions {
		if w := v.Definition.StartWithin; w > 0 && (limit < 0 || w < limit) {
			limit = w
		}
	}
	return limit
}

// held reports whether another run of the job was going when a tick was skipped. By the books: a
// run of an earlier tick, or by hand, whose end is recorded after this row or not yet; or a run,
// with the attempts that followed it, during which the tick came due. By the writes, where a record
// was lost: a run that had begun and not ended when the tick came due.
func (t *trial) held(c covered, d *tick) bool {
	began := instant(c.row.At).Add(t.Skew) // by then it must have been granted
	for i := range t.books.Rows {
		row := &t.books.Rows[i]
		switch {
		case row.Ranged || row.TickID != "" || row.Started != 0 && instant(t.heldFrom(row)).After(began):
		case i > c.at && before(row.Tick, row.Request != "", c.row, d.at):
			return true
		case t.heldFrom(row) <= d.ready.Add(t.Skew).UnixMilli() && d.soonest.Add(-t.Skew).UnixMilli() <= row.At:
			return true
		}
	}
	for i := c.at - 1; i >= 0; i-- { // the run before: its end may not have been reported at once
		if row := &t.books.Rows[i]; !row.Ranged && row.TickID == "" {
			if t.struck(instant(row.At), d.ready, row.NodeName, row.Node, false) {
				return true
			}
			break
		}
	}
	for i := range t.books.Open {
		l := &t.books.Open[i]
		if len(t.ups) > 0 && l.Granted <= c.row.At { // word of an earlier tick may come later
			return true
		}
		from := l.Granted
		if l.Attempt > 1 { // the attempt before it held the job, and its wait
			from = t.heldFrom(&ledger.Row{Run: l.ID, Tick: l.Tick, Request: l.Request, Attempt: l.Attempt, Started: l.Granted})
		}
		if late := instant(from).After(began) && !l.ReservesJob; !late && before(l.Tick, asked(l.Request, l.Trigger), c.row, d.at) {
			return true
		}
	}
	for _, r := range t.runs {
		if r.row != nil || len(r.starts) == 0 {
			continue
		}
		if !r.starts[0].At.After(instant(c.row.At)) && !t.over(r).Before(d.at) {
			return true
		}
	}
	return false
}

// heldFrom returns since when a run, or the crashed attempt before it, held the job, ms.
func (t *trial) heldFrom(row *ledger.Row) int64 {
	from := row.Started
	if from == 0 {
		return never
	}
	// The run may have been granted earlier: its node may not have received the grant, or handed it
	// back.
	unheard := t.struck(instant(row.Tick), instant(from), row.NodeName, row.Node, false)
	if row.Attempt < 2 && (unheard || derived(row.Run)) {
		return min(from, row.Tick)
	}
	if row.Attempt < 2 {
		return from
	}
	for i := range t.books.Rows {
		p := &t.books.Rows[i]
		if t.reran[row.Run] && !t.triedAgain(p) {
			continue // nothing but the person's request held the job
		}
		if !p.Ranged && p.TickID == "" && p.Tick == row.Tick && p.Request == row.Request && p.Attempt < row.Attempt && p.Started != 0 {
			from = min(from, p.Started)
		}
	}
	return from
}

// before reports whether a recorded run may have been granted before a row of skipped ticks was
// written. By schedule, the earlier tick was granted first, because the cursor passes ticks in
// order. By hand, the request must be older than the row.
func before(tick int64, asked bool, row *ledger.Row, due time.Time) bool {
	if asked {
		return tick <= row.At
	}
	return tick < due.UnixMilli()
}

// versionsMeet reports whether two versions may both have been in force at an instant, its edges
// included. Versions that share schedule and definition are one version with several certain spans.
func (t *trial) versionsMeet(at time.Time) bool {
	var found *Version
	for i := range t.job.Versions {
		v := &t.job.Versions[i]
		p := v.Possible
		if p.From.IsZero() || p.From.After(at) || !p.Until.IsZero() && p.Until.Before(at) {
			continue
		}
		if found != nil && (found.Schedule != v.Schedule || found.Definition.Digest() != v.Definition.Digest()) {
			return true
		}
		found = v
	}
	return false
}

// waitsForLatest reports whether, of the ticks which come due while a run is going, the latest
// waits until the run has ended.
func (t *trial) waitsForLatest() bool {
	d, one := t.oneDefinition()
	return one && len(t.ups) == 0 && !t.job.Rewound && len(t.job.Pauses) == 0 && (d.Overlap == jobs.OverlapQueue || d.Overlap == jobs.OverlapReplace)
}

// newer returns how many ticks came due after one, up to an instant.
func (t *trial) newer(than, until time.Time) int {
	n := 0
	for _, d := range t.due {
		if d.at.After(than) && !d.at.After(until) {
			n++
		}
	}
	return n
}

// dueBetween reports whether a tick came due after one, up to an instant or a little later.
func (t *trial) dueBetween(than, until time.Time) bool { return t.newer(than, until.Add(t.Skew)) > 0 }
