package audit

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

// Runs of a backfill, like runs by hand, are no steps of the cursor. They run beside the job's
// other runs and beside each other.

// backfilled reports whether a run belongs to a backfill.
func (r *run) backfilled() bool {
	if g, known := r.record(); known {
		return g.trigger == jobs.TriggerBackfill.String()
	}
	return len(r.starts) > 0 && r.starts[0].backfilled()
}

func (w Write) backfilled() bool { return w.Trigger == jobs.TriggerBackfill.String() }

// asked reports whether a run was requested: it is no tick of the schedule.
func asked(request, trigger string) bool {
	return request != "" || trigger == manual || trigger == jobs.TriggerBackfill.String()
}

// fills reports whether a line's tick lies in the range of a requested backfill.
func (t *trial) fills(w Write) bool {
	return slices.ContainsFunc(t.job.Backfills, func(s Span) bool { return !w.Tick.Before(s.From) && w.Tick.Before(s.Until) })
}
