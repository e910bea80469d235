package inspect

import (
	"cmp"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// deadNote belongs to the reason of ticks that were skipped for overlap.
const deadNote = "held by a dead node's lease"

// noteDead notes, in the rows of a job, of which skipped ticks the last one came while a run held the job that was abandoned: then a dead
// node's lease was in the way, and no work.
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
