package agenda

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// NoNode returns the ticks to give up of a job that no living node can run: from its cursor on, the
// ticks later than start_within, or than a day, at Redis' time now. Ticks in a pause are recorded
// as paused. next is the first tick that is kept, ms; 0 for none.
func NoNode(j jobs.Job, s *jobs.Schedule, cursor int64, pause ledger.Window, now int64) (passes []ledger.SkippedRange, next int64) {
	limit := ledger.NoNodeGiveUp
	if j.StartWithin > 0 {
		limit = j.StartWithin
	}
	p := planner{schedule: s, cursor: cursor, now: now, windows: windows{pause: pause}}
	for next = cursor; next != 0 && next <= now; {
		f := decision{outcome: jobs.OutcomeMissed, reason: ledger.ReasonNoNode, until: now - limit.Milliseconds()}
		switch {
		case pause.Holds(next):
			f = decision{outcome: jobs.OutcomePaused, reason: ledger.ReasonPaused, until: p.end(pause)}
		case next >= f.until:
			return p.passes, next
		}
		next = p.pass(next, f)
	}
	return p.passes, next
}
