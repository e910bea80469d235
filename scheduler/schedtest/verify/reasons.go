package verify

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// reasons asks of each record why something did not run, or did not end well, whether that is
// true. A tick that started all the same is a contradiction, not asked about again.
func (t *trial) reasons() {
	for _, c := range t.ranges {
		if c.row.Outcome == jobs.OutcomeSuperseded && !t.versionsMeet(instant(c.row.At)) {
			t.add(KindUntrue, instant(c.row.Tick), "superseded at %s, when no other version was in sight", stamp(instant(c.row.At)))
			continue
		}
		for i, d := range c.ticks {
			if len(d.starts) > 0 {
				continue
			}
			if why := t.untrue(c, d, i == 0); why != "" {
				t.add(KindUntrue, d.at, "%s (%s), recorded at %s: %s", c.row.Outcome, c.row.Reason, stamp(instant(c.row.At)), why)
				break // one finding a row
			}
		}
	}
	for _, row := range t.rows {
		if why := t.unended(row); !row.Ranged && why != "" {
			t.add(KindUntrue, instant(row.Tick), "run %s on %s %s (%s), recorded at %s: %s",
				row.Run, row.NodeName, row.Outcome, row.Reason, stamp(instant(row.At)), why)
		}
	}
}

// untrue says why a tick's recorded reason is none; "" when it is.
func (t *trial) untrue(c covered, d *tick, head bool) string {
	at := instant(c.row.At)
	waited := !d.excused && at.After(d.deadline)
	switch c.row.Outcome {
	case jobs.OutcomeMissed:
		switch {
		case c.row.Reason == ledger.ReasonFailover && t.lossy(d.at, at):
			return ""
		case c.row.Reason != ledger.ReasonLate:
			return "a reason that is not known"
		case head && at.Sub(d.at) <= t.CatchUp:
			return "it was overdue by " + at.Sub(d.at).String() + " only"
		case waited:
			return "nothing was wrong that kept it from running"
		}
	case jobs.OutcomeSuperseded:
		if waited {
			return "it should have run before, nothing was wrong"
		}
	case jobs.OutcomeSkipped:
		switch {
		case c.row.Reason != ledger.ReasonOverlap:
			return "a reason that is not known"
		case !t.held(c, d.at):
			return "no other run of the job was going"
		}
	default:
		return "nothing in this case can cause that"
	}
	return ""
}

// held says whether another run of the job was going when a tick was skipped. By the books: one of
// an earlier tick, or by hand, whose end is recorded after this row, or not yet. By the sink,
// where a record was lost: one that had begun and had not ended when the tick came due.
func (t *trial) held(c covered, due time.Time) bool {
	for _, row := range t.rows[c.at+1:] {
		if !row.Ranged && before(row.Tick, row.Trigger, c.row, due) {
			return true
		}
	}
	for _, l := range t.open {
		if before(l.Tick, l.Trigger, c.row, due) {
			return true
		}
	}
	for _, r := range t.runs {
		if r.row != nil || len(r.starts) == 0 {
			continue
		}
		s := r.starts[0]
		if !s.At.After(instant(c.row.At)) && (r.end == nil || !r.end.At.Before(due)) {
			return true
		}
	}
	return false
}

// before says whether a recorded run may have been granted before a row of skipped ticks was written.
// By schedule the order of ticks tells, for the cursor passes them in order; by hand, that it was asked
// for by then.
func before(tick int64, trigger string, row ledger.Row, due time.Time) bool {
	if trigger == manual {
		return tick <= row.At
	}
	return tick < due.UnixMilli()
}

// versionsMeet says whether two versions may both have been in force at an instant, its edges
// included. Versions that share a schedule are one, of which several spans are certain.
func (t *trial) versionsMeet(at time.Time) bool {
	var found Schedule
	for _, v := range t.job.Versions {
		p := v.Possible
		if p.From.IsZero() || p.From.After(at) || !p.Until.IsZero() && p.Until.Before(at) {
			continue
		}
		if found != nil && found != v.Schedule {
			return true
		}
		found = v.Schedule
	}
	return false
}

// unended says why the recorded end of a run cannot be true; "" when it can. A sharded tick ends as its shards do.
func (t *trial) unended(row ledger.Row) string {
	if row.Whole {
		return ""
	}
	from, to := instant(row.Started), instant(row.At)
	switch row.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut:
		return "" // the sink tells
	case jobs.OutcomeAbandoned, jobs.OutcomeLost:
		if !t.struck(from, to, row.NodeName, row.Node, false) {
			return "nothing was wrong with its node, nor with Redis, since it was granted"
		}
	case jobs.OutcomeCancelled:
		if !t.struck(from, to, row.NodeName, row.Node, true) {
			return "nobody drained its node, nor was anything wrong with it"
		}
	default:
		if !row.Ranged {
			return "a run does not end like that"
		}
	}
	return ""
}
