package audit

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

// Runs of a backfill are no steps of the cursor, as those by hand are none. They run beside what
// the job runs else, and beside each other.

// backfilled says that a run belongs to a backfill.
func (r *run) backfilled() bool {
	if g, known := r.record(); known {
		return g.trigger == jobs.TriggerBackfill.String()
	}
	return len(r.starts) > 0 && r.starts[0].backfilled()
}

func (w Write) backfilled() bool { return w.Trigger == jobs.TriggerBackfill.String() }

// asked says that somebody asked for a run that is no tick of the schedule.
func asked(request, trigger string) bool {
	return request != "" || trigger == manual || trigger == jobs.TriggerBackfill.String()
}

// fills says that a line's tick lies in the range of a backfill that somebody asked for.
func (t *trial) fills(w Write) bool {
	return slices.ContainsFunc(t.job.Backfills, func(s Span) bool { return !w.Tick.Before(s.From) && w.Tick.Before(s.Until) })
}
