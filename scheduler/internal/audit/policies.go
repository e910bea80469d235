package audit

import (
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// tries checks the tries of one run: one after another, each further try after a failure, and no
// more of them than the job may have.
func (t *trial) tries() {
	most := 1 + t.job.most(func(d jobs.Definition) int { return d.Retry.Max })
	going, last := make(map[*run]bool), make(map[*run]Write)
	for i, w := range t.lines {
		r := t.of[i]
		before, again := last[r]
		if last[r] = w; w.Phase == End {
			going[r] = false
			continue
		}
		switch {
		case w.Try > most:
			t.add(KindUnwanted, w.Tick, "at most %d tries: %s", most, w)
		case !again:
		case going[r]:
			t.add(KindDouble, w.Tick, "begun while it was going: %s", w)
		case w.Try <= before.Try || w.Try == 0:
			t.add(KindDouble, w.Tick, "begun after %s: %s", before, w)
		case !before.Failed && !before.Refused:
			t.add(KindUnwanted, w.Tick, "after a try that succeeded: %s", w)
		}
		going[r] = true
	}
}

// policies checks that nothing started against the policies or an operator's order. Where Redis
// lost writes or had its clock stepped, the necessary evidence is missing and nothing is checked.
func (t *trial) policies() {
	lost := slices.ContainsFunc(t.Disturbed, func(d Disturbance) bool { return d.Lossy || d.Loses })
	if lost || t.Stepped {
		return
	}
	t.reruns()
	t.rerunAfterCrash()
	t.startedPaused()
	t.startedTooLate()
	t.caughtUp()
	t.queued()
	t.startedCancelled()
	t.ranTooOften()
}

// grantedAt returns when a run was first granted: the observed grant, or else the run's start.
func (t *trial) grantedAt(r *ledger.Row) time.Time {
	if at, seen := t.firstGrants[r.Run]; seen {
		return at
	}
	return instant(r.Started)
}

// oneDefinition returns the only definition that a job has had; false when there were several.
func (t *trial) oneDefinition() (jobs.Definition, bool) {
	if len(t.job.Versions) == 0 {
		return jobs.Definition{}, false
	}
	d := t.job.Versions[0].Definition
	return d, t.job.all(func(o jobs.Definition) bool { return o.Digest() == d.Digest() })
}

// steps returns the rows of runs and of sharded ticks as a whole, without the shards.
func (t *trial) steps() []*ledger.Row {
	var all []*ledger.Row
	for i := range t.books.Rows {
		if r := &t.books.Rows[i]; !r.Ranged && r.TickID == "" && (r.Token != 0 || r.IsTick) {
			all = append(all, r)
		}
	}
	return all
}

// reruns checks attempts that no operator requested: each follows a crash, or a failure that
// another node retries, and the job's settings allow their number.
func (t *trial) reruns() {
	most := 1 + t.job.most(func(d jobs.Definition) int { return d.RerunMax }) + t.job.most(retriesElsewhere)
	before := make(map[string]*ledger.Row)
	for i := range t.books.Rows {
		if r := &t.books.Rows[i]; !r.Ranged {
			before[ledger.NextAttemptID(r.Run)] = r
		}
	}
	for i := range t.books.Rows {
		r := &t.books.Rows[i]
		again := r.Trigger == jobs.TriggerRerun.String() || r.Trigger == jobs.TriggerBackfill.String() && r.Attempt > 1
		if r.Ranged || r.Token == 0 || !again || t.reran[r.Run] {
			continue
		}
		p := before[r.Run]
		switch {
		case r.Attempt > most:
			t.add(KindUnwanted, instant(r.Tick), "attempt %d (run %s), at most %d", r.Attempt, r.Run, most)
		case p != nil && !crashed(p) && !t.triedAgain(p):
			t.add(KindUnwanted, instant(r.Tick), "attempt %d (run %s) follows run %s, which is recorded as %s", r.Attempt, r.Run, p.Run, p.Outcome)
		}
	}
}

// retriesElsewhere returns how many attempts other nodes may make of a tick whose function fails.
func retriesElsewhere(d jobs.Definition) int {
	if d.Retry.On != jobs.RetryOtherNode {
		return 0
	}
	return d.Retry.Max
}

// triedAgain reports whether a failed run may have been handed to another node.
func (t *trial) triedAgain(row *ledger.Row) bool {
	return row.Outcome == jobs.OutcomeFailed && row.Attempt <= t.job.most(retriesElsewhere)
}

// rerunAfterCrash checks that a job with on_crash: rerun gets another attempt after a crash, unless
// the run had been ordered to end before.
func (t *trial) rerunAfterCrash() {
	wants := func(d jobs.Definition) bool {
		return d.OnCrash == jobs.OnCrashRerun && d.Overlap != jobs.OverlapReplace
	}
	if !t.job.all(wants) || t.job.Rewound || len(t.job.Cancelled) > 0 {
		return
	}
	least := math.MaxInt
	for _, v := range t.job.Versions {
		least = min(least, v.Definition.RerunMax)
	}
	for i := range t.books.Rows {
		r := &t.books.Rows[i]
		if r.Ranged || r.IsTick || r.Outcome != jobs.OutcomeAbandoned || r.Attempt > least {
			continue
		}
		ids := make(map[string]bool)
		chain(ledger.NextAttemptID(r.Run), 0, ids)
		there := slices.ContainsFunc(t.books.Rows, func(x ledger.Row) bool {
			return ids[x.Run] || x.Run == r.TickID && x.Reason != "" && crashed(&x) && !t.job.Rewound
		}) ||
			slices.ContainsFunc(t.books.Open, func(x ledger.Run) bool { return ids[x.ID] })
		if !there {
			t.add(KindLost, instant(r.Tick), "run %s was abandoned, and no other attempt followed", r.Run)
		}
	}
}

// startedPaused checks that while a job is paused only requests and shards of an open tick are
// granted, and that the ticks of a pause never are.
func (t *trial) startedPaused() {
	for _, r := range t.steps() {
		if asked(r.Request, r.Trigger) || t.reran[r.Run] || t.job.Rewound {
			continue
		}
		granted, tick := t.grantedAt(r), instant(r.Tick)
		step := r.Prev != 0 && !derived(r.Run)
		for _, p := range t.job.Pauses {
			if inside(p, granted) && !(step && tick.After(granted)) { // a grant ahead may be for a tick after the pause
				t.add(KindUnwanted, tick, "run %s was granted at %s, while the job was paused", r.Run, instantText(granted))
			} else if step && inside(p, tick) && granted.After(p.From) {
				t.add(KindUnwanted, tick, "run %s was granted at %s, and the job was paused at its tick", r.Run, instantText(granted))
			}
		}
	}
}

// inside reports whether an instant lies in a span, its edges excluded.
func inside(s Span, at time.Time) bool {
	return s.From.Before(at) && (s.Until.IsZero() || at.Before(s.Until))
}

// startedTooLate checks that no tick is granted for the first time later than start_within.
func (t *trial) startedTooLate() {
	if len(t.ups) > 0 || !t.job.all(func(d jobs.Definition) bool { return d.StartWithin > 0 }) {
		return
	}
	limit := time.Duration(t.job.most(func(d jobs.Definition) int { return int(d.StartWithin) }))
	for _, r := range t.steps() {
		late := t.grantedAt(r).Sub(instant(r.Tick))
		if r.Prev != 0 && r.Attempt == 1 && !derived(r.Run) && late > limit+t.Skew {
			t.add(KindUnwanted, instant(r.Tick), "run %s was granted %s after its tick, and may start within %s", r.Run, late, limit)
		}
	}
}

// caughtUp checks the ticks too late to run in order: only ticks that the catch-up policy allows
// ran.
func (t *trial) caughtUp() {
	d, one := t.oneDefinition()
	if !one || len(t.ups) > 0 || d.Overlap == jobs.OverlapQueue || d.Overlap == jobs.OverlapReplace || t.job.Rewound {
		return
	}
	for _, r := range t.steps() {
		granted := t.grantedAt(r)
		if r.Prev == 0 || derived(r.Run) || granted.Sub(instant(r.Tick)) <= t.CatchUp+t.Skew {
			continue
		}
		newer, late := 0, 1 // newer: ticks of the gap after this one; late: too late to run in order
		for _, x := range t.due {
			if !x.at.After(instant(r.Tick)) || !x.at.Before(granted.Add(-t.Skew)) || t.pausedBetween(x.at, x.at) {
				continue
			}
			if newer++; x.at.Before(granted.Add(-t.CatchUp - t.Skew)) {
				late++
			}
		}
		switch {
		case d.CatchUp == jobs.CatchUpNone, d.CatchUp == jobs.CatchUpLatest && newer > 0:
			t.add(KindUnwanted, instant(r.Tick), "run %s was granted at %s with catch_up %s, and so late it should not have run", r.Run, instantText(granted), d.CatchUp)
		case d.CatchUp == jobs.CatchUpAll && late > d.CatchUpMax:
			t.add(KindUnwanted, instant(r.Tick), "run %s was granted at %s; with it %d ticks are made up for, at most %d", r.Run, instantText(granted), late, d.CatchUpMax)
		}
	}
}

// queued checks the ticks that came due while a run with overlap queue or replace was going: only
// the latest ran.
func (t *trial) queued() {
	d, one := t.oneDefinition()
	if !one || len(t.ups) > 0 || t.job.Rewound || d.Overlap != jobs.OverlapQueue && d.Overlap != jobs.OverlapReplace {
		return
	}
	steps := t.steps()
	slices.SortStableFunc(steps, func(a, b *ledger.Row) int { return int(a.Started - b.Started) })
	for i := 1; i < len(steps); i++ {
		holder, r := steps[i-1], steps[i]
		unclear := holder.Outcome == jobs.OutcomeAbandoned || derived(holder.Run) || holder.IsTick && holder.Outcome != jobs.OutcomeSucceeded
		if r.Prev == 0 || derived(r.Run) || unclear || r.Tick < holder.Started || r.Tick >= holder.At || r.Started < holder.At {
			continue
		}
		next := slices.IndexFunc(t.due, func(x *tick) bool { return x.at.UnixMilli() > r.Tick })
		if next >= 0 && t.due[next].at.UnixMilli() < holder.At && !t.pausedBetween(t.due[next].at, t.due[next].at) {
			t.add(KindUnwanted, instant(r.Tick), "run %s was granted, and tick %s came due before run %s had ended at %s too",
				r.Run, instantText(t.due[next].at), holder.Run, instantText(instant(holder.At)))
		}
	}
}

// startedCancelled checks that a run which was cancelled while pending is never granted.
func (t *trial) startedCancelled() {
	for _, c := range t.job.Cancelled {
		for i := range t.books.Rows {
			r := &t.books.Rows[i]
			if (r.Run == c.Run || r.TickID == c.Run) && c.Pending && !r.IsTick && r.Token != 0 && t.grantedAt(r).After(c.At) {
				t.add(KindUnwanted, instant(r.Tick), "run %s was granted after run %s was cancelled at %s", r.Run, c.Run, instantText(c.At))
			}
		}
	}
}
