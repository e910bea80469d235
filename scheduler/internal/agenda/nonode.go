package agenda

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// NoNodeAfter is how late a tick of a job without start_within must be before it is recorded that no node could run it.
const NoNodeAfter = 24 * time.Hour

// NoNode is which ticks of a job that no living node can run are given up at Redis' time now, from its cursor on: those that are later than
// start_within, or a day. Those of a pause are paused. next is the tick behind them, ms, 0 for none.
func NoNode(j jobs.Job, s *jobs.Schedule, cursor int64, pause ledger.Window, now int64) (passes []ledger.SkippedRange, next int64) {
	limit := NoNodeAfter
	if j.StartWithin > 0 {
		limit = j.StartWithin
	}
	p := planner{schedule: s, cursor: cursor, now: now, outlook: outlook{pause: pause}}
	for next = cursor; next != 0 && next <= now; {
		f := fate{outcome: jobs.OutcomeMissed, reason: ledger.ReasonNoNode, until: now - limit.Milliseconds()}
		switch {
		case pause.Holds(next):
			f = fate{outcome: jobs.OutcomePaused, reason: ledger.ReasonPaused, until: p.end(pause)}
		case next >= f.until:
			return p.passes, next
		}
		next = p.pass(next, f)
	}
	return p.passes, next
}
