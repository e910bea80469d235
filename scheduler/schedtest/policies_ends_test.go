package schedtest

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// reruns that nobody asked for follow a crash, of a job that wants them, and no more often than it says.
func (t *tale) reruns() {
	for _, g := range t.grants {
		if g.trigger != jobs.TriggerRerun.String() || t.again[g.run] {
			continue
		}
		if most := 1 + t.most(g.job, func(j jobs.Job) int { return j.RerunMax }); g.attempt > most {
			t.blame("%s: attempt %d (%s), at most %d", g.lineage(), g.attempt, g.run, most)
		}
		var before *given
		for i, o := range t.grants {
			if o.lineage() == g.lineage() && o.attempt == g.attempt-1 && o.at.Before(g.at) {
				before = &t.grants[i]
			}
		}
		if before == nil {
			continue // it was handed back, and the row shows what it waited for
		}
		if e := t.endOf(before.run); e != nil && !slices.Contains([]string{"abandoned", "lost", "cancelled"}, e.outcome) {
			t.blame("%s: attempt %d (%s) after one that is %s", g.lineage(), g.attempt, g.run, e.outcome)
		}
		if r := t.rowOf(before.job, before.run); r != nil && r.Outcome == jobs.OutcomeCancelled && r.Reason != ledger.ReasonDraining {
			t.blame("%s: attempt %d (%s) after one that was %s", g.lineage(), g.attempt, g.run, r.Reason)
		}
	}
}

// calm says whether nothing was wrong with a node, or with Redis, in a span of true time.
func (t *tale) calm(node string, from, until time.Time) bool {
	return !slices.ContainsFunc(t.disturbed, func(d verify.Disturbance) bool {
		return d.Job == "" && d.From.Before(until) && d.Until.After(from) && (len(d.Nodes) == 0 || slices.Contains(d.Nodes, node))
	})
}

// promptly is how soon a node hears, when nothing is wrong, that a run is to end.
const promptly = 2500 * time.Millisecond

// cancelled: a run that was told to end does so, and one that was pending never begins.
func (t *tale) cancelled() {
	for _, k := range t.kills {
		if k.word == ledger.Told && t.openOf(k.run) != nil {
			t.cancelledWhole(k)
		}
		g := t.grantOf(k.run)
		switch {
		case k.word == ledger.Cancelled && g != nil && g.at.After(k.at):
			t.blame("run %s is granted after it was cancelled", k.run)
		case k.word == ledger.Told && g != nil:
			t.stops(k.run, *g, k.at, "it was cancelled")
		}
		if r := t.rowOf(k.job, k.run); k.word == ledger.Cancelled && r == nil && !t.trimmed(k.job) {
			t.blame("run %s was cancelled, and there is no row", k.run)
		}
	}
}

// stops checks that a function that listens has not worked on for long after an instant.
func (t *tale) stops(run string, g given, at time.Time, why string) {
	limit := at.Add(promptly)
	if g.process == nil || !t.calm(g.process.seat.name, at.Add(-2*sec), limit) || limit.After(t.now) {
		return
	}
	for _, k := range t.calls {
		if k.run.ID() == run && !k.stubborn && !k.began.After(limit) && (k.ended.IsZero() || k.ended.After(limit)) && k.began.Before(limit) {
			t.blame("run %s works on %s after %s", run, promptly, why)
		}
	}
}

// promised: each run that was asked for by hand exists.
func (t *tale) promised() {
	for _, a := range t.asked {
		n := 0
		for _, r := range t.rows[a.job] {
			if r.Request == a.run || r.Run == a.run {
				n++
			}
		}
		for _, l := range t.open {
			if l.Job == a.job && (l.Request == a.run || l.Run == a.run) {
				n++
			}
		}
		if n == 0 && !t.trimmed(a.job) {
			t.blame("%s: run %s was promised, and there is none", a.job, a.run)
		}
	}
}
