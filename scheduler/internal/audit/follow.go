package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// tickEnd is the result of an upstream's tick.
type tickEnd struct {
	first     int64 // when it ended first, by Redis' clock, ms; 0: it has not ended
	at        int64 // the same, or its first success
	succeeded bool
	outcome   jobs.Outcome // of the end at that time
	attempts  int          // attempts that ended or go on, and rows with a reason why the tick did not run
	open      bool
}

// end returns the result of a tick of this job from its records. A shard's end is not delivered to
// followers, its tick's end is; nor is the end of a run that the job itself follows with another
// attempt.
func (t *trial) end(d *tick) tickEnd {
	var e tickEnd
	note := func(at int64, outcome jobs.Outcome) {
		succeeded := outcome == jobs.OutcomeSucceeded
		if e.at == 0 || succeeded && !e.succeeded {
			e.at, e.outcome = at, outcome
		}
		if e.succeeded = e.succeeded || succeeded; e.first == 0 || at < e.first {
			e.first = at
		}
	}
	for _, r := range slices.Concat(d.rows, d.wholes) {
		if !r.IsTick && r.Shards > 1 {
			continue
		}
		if e.attempts++; !t.goesOn(r) {
			note(r.At, r.Outcome)
		}
	}
	for _, r := range d.ranges {
		e.attempts++
		note(r.At, r.Outcome)
	}
	for _, l := range slices.Concat(d.leases, d.opened) {
		if l.IsOpenTick || l.Shards < 2 {
			e.attempts, e.open = e.attempts+1, true
		}
	}
	return e
}

// goesOn reports whether another attempt, not or not necessarily requested, has followed a run.
func (t *trial) goesOn(r *ledger.Row) bool {
	next := ledger.NextAttemptID(r.Run)
	return t.byID[next] != nil && (!t.reran[next] || t.triedAgain(r))
}

// followed returns the ticks that at least one upstream has ended. A tick that all upstreams have
// ended needs an answer, unless one of them ended it before this job was surely registered.
func (t *trial) followed() []int64 {
	var asks []int64
	for _, up := range t.ups {
		for _, u := range up.due {
			if up.end(u).at != 0 {
				asks = append(asks, u.at.UnixMilli())
			}
		}
	}
	slices.Sort(asks)
	asks = slices.Compact(asks)
	successes := t.job.any(func(d jobs.Definition) bool { return d.When == jobs.WhenSucceeded })
	for _, ms := range asks {
		d := t.expect(instant(ms))
		d.must = true
		for _, up := range t.ups {
			u := up.byTick[ms]
			if u == nil || up.end(u).at == 0 { // it goes on, or its record is gone
				d.must, d.ready = false, t.Read
				continue
			}
			ended := up.end(u).first // another attempt changes nothing
			if successes {
				ended = up.end(u).at
			}
			ready := latest(d.at, instant(ended))
			d.must = d.must && slices.ContainsFunc(t.job.Versions, func(v Version) bool { return within(v.Certain, ready) })
			if d.ready = latest(d.ready, ready); len(u.ranges) == 0 {
				d.soonest = latest(d.soonest, ready)
			}
		}
	}
	return asks
}

func within(s Span, at time.Time) bool {
	return !s.From.IsZero() && !s.From.After(at) && (s.Until.IsZero() || at.Before(s.Until))
}

// waits reports whether the event of an end is still to be delivered to this job.
func (t *trial) waits(d *tick) bool {
	ms := d.at.UnixMilli()
	return len(t.ups) > 0 && slices.ContainsFunc(t.Events, func(e ledger.Event) bool {
		return slices.Contains(t.job.upstreams(), e.Upstream) && e.Tick <= ms && ms <= max(e.Tick, e.Until)
	})
}

// upRewound reports whether an upstream's cursor was set back.
func (t *trial) upRewound() bool {
	return slices.ContainsFunc(t.ups, func(up *trial) bool { return up.job.Rewound })
}

// worseFirst orders the outcomes of several upstreams: the first one found decides.
var worseFirst = []jobs.Outcome{jobs.OutcomeSuperseded, jobs.OutcomePaused, jobs.OutcomeAbandoned, jobs.OutcomeLost, jobs.OutcomeTimedOut,
	jobs.OutcomeFailed, jobs.OutcomeCancelled, jobs.OutcomeMissed, jobs.OutcomeSkipped, jobs.OutcomeSucceeded}

// came returns how a tick ended, the worst of all upstreams; known is false where one of them did
// not end it exactly once.
func (t *trial) came(d *tick) (came jobs.Outcome, known bool) {
	if !t.once(d) {
		return 0, false
	}
	least := len(worseFirst)
	for _, up := range t.ups {
		e := up.end(up.byTick[d.at.UnixMilli()])
		if e.open {
			return 0, false
		}
		least = min(least, slices.Index(worseFirst, e.outcome))
	}
	return worseFirst[least], true
}

// wants reports whether every definition of the job runs after a tick with this outcome.
func (t *trial) wants(came jobs.Outcome) bool {
	return t.job.all(func(d jobs.Definition) bool { return answers(d.When, came) })
}

// answers reports whether a job runs after a tick with this outcome: the table of jobs.When.
func answers(when jobs.When, came jobs.Outcome) bool {
	switch came {
	case jobs.OutcomeSucceeded:
		return when != jobs.WhenFailed
	case jobs.OutcomeSkipped, jobs.OutcomeMissed:
		return when == jobs.WhenAny
	default:
		return came.Ran() && when != jobs.WhenSucceeded
	}
}

// unwanted checks that a follower ran only for a tick that all upstreams have ended, with an
// outcome that the follower waits for.
func (t *trial) unwanted(d *tick) {
	if len(d.starts) == 0 || t.upRewound() || t.lossAfter(d.at) {
		return
	}
	if came, known := t.came(d); known && !t.job.any(func(def jobs.Definition) bool { return answers(def.When, came) }) {
		t.add(KindUnwanted, d.at, "%s, and the tick that it follows ended as %s", d.starts[0], came)
	}
	for _, up := range t.ups {
		u := up.byTick[d.at.UnixMilli()]
		if u == nil || up.trimmed(u.at) || d.starts[0].At.After(t.Read) {
			continue
		}
		if e := up.end(u); e.attempts == 0 || e.open && e.attempts == 1 {
			t.add(KindUnwanted, d.at, "%s, and %s has not ended that tick", d.starts[0], up.job.Name)
		}
	}
}
