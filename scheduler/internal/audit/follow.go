package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// tickEnd is what became of a tick of the job that is followed.
type tickEnd struct {
	at        int64 // when it ended first, or succeeded first, by Redis' clock, ms; 0: it has not ended
	succeeded bool
	attempts  int // that ended or go on, and rows that say why it did not run
	open      bool
}

// end is what became of a tick, as far as the records tell. Shards tell nobody, their tick does.
func (d *tick) end() tickEnd {
	var e tickEnd
	note := func(at int64, succeeded bool) {
		if e.attempts++; e.at == 0 || succeeded && !e.succeeded {
			e.at = at
		}
		e.succeeded = e.succeeded || succeeded
	}
	for _, r := range slices.Concat(d.rows, d.wholes) {
		if r.Whole || r.Shards < 2 {
			note(r.At, r.Outcome == jobs.OutcomeSucceeded)
		}
	}
	for _, r := range d.ranges {
		note(r.At, false)
	}
	for _, l := range slices.Concat(d.leases, d.opened) {
		if l.Whole || l.Shards < 2 {
			e.attempts, e.open = e.attempts+1, true
		}
	}
	return e
}

// followed are the ticks of the job that this one follows which have ended: each wants an answer, unless it ended
// before this job was surely registered.
func (t *trial) followed() []int64 {
	var asks []int64
	for _, u := range t.up.due {
		e := u.end()
		if e.at == 0 {
			continue
		}
		d := t.expect(u.at)
		if d.ready = instant(e.at); d.ready.Before(d.at) {
			d.ready = d.at
		}
		d.must = slices.ContainsFunc(t.job.Versions, func(v Version) bool { return within(v.Certain, d.ready) })
		asks = append(asks, u.at.UnixMilli())
	}
	slices.Sort(asks)
	return slices.Compact(asks)
}

func within(s Span, at time.Time) bool {
	return !s.From.IsZero() && !s.From.After(at) && (s.Until.IsZero() || at.Before(s.Until))
}

// waits says whether word of an end has not been brought to this job yet.
func (t *trial) waits(d *tick) bool {
	ms := d.at.UnixMilli()
	return t.up != nil && slices.ContainsFunc(t.Events, func(e ledger.Event) bool {
		return e.Upstream == t.up.job.Name && e.Tick <= ms && ms <= max(e.Tick, e.Until)
	})
}

// followsSuccess checks that a follower ran only for a tick that succeeded.
func (t *trial) followsSuccess(d *tick) {
	u := t.up.byTick[d.at.UnixMilli()]
	if u == nil || t.up.job.Rewound {
		return
	}
	e := u.end()
	once := e.attempts == 1 && !e.open && len(t.up.job.Reruns) == 0
	if len(d.starts) > 0 && once && !e.succeeded && !t.lossAfter(d.at) {
		t.add(KindUnwanted, d.at, "%s, and %s did not succeed at that tick", d.starts[0], t.up.job.Name)
	}
}
