package inspect

import (
	"cmp"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// deadNote belongs to the reason of ticks that were skipped for overlap.
const deadNote = "held by a dead node's lease"

// noteDead adds deadNote to a job's rows of skipped ticks whose last tick came due while the lease
// of an abandoned run held the job: a dead node's lease was in the way, and no work.
func noteDead(rows []ledger.Row) {
	for i := range rows {
		r := &rows[i]
		if !r.Ranged || r.Outcome != jobs.OutcomeSkipped || r.Reason != ledger.ReasonOverlap {
			continue
		}
		if slices.ContainsFunc(rows, func(run ledger.Row) bool {
			return run.Outcome == jobs.OutcomeAbandoned && !run.IsTick && cmp.Or(run.Started, run.Tick) <= r.Until && r.Until < run.At
		}) {
			r.Note = deadNote
		}
	}
}
