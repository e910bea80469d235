package inspect

import (
	"context"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// tailRows is how many of a job's newest rows are read at first.
const tailRows = 16

// Latest is the latest runs in a job's history.
type Latest struct {
	Tick    int64        // the newest tick, ms, 0 for none
	Outcome jobs.Outcome // of the row that was recorded last, 0 for none
	Success int64        // when a run last succeeded, ms, 0 for never
}

// ReadLatest reads the latest runs of jobs. Followers have no cursor: their whole history is read
// for the newest tick. unread are the errors of histories that could not be read.
func ReadLatest(ctx context.Context, l *ledger.Ledger, all []query.Stored, follows func(job string) bool) (by map[string]Latest, unread []error, err error) {
	by = make(map[string]Latest, len(all))
	var tails, whole []string
	succeeded, won := make(map[string]bool, len(all)), make(map[string]int64)
	for _, s := range all {
		succeeded[s.Job] = s.Counts[jobs.OutcomeSucceeded] > 0
		if s.Won != 0 {
			won[s.Job] = s.Won
		}
		if follows(s.Job) {
			whole = append(whole, s.Job)
		} else {
			tails = append(tails, s.Job)
		}
	}
	err = query.EachTail(ctx, l, tails, tailRows, func(h query.JobRows) bool {
		latest := latestOf(h.Rows)
		by[h.Job], unread = latest, append(unread, HistoryError(h.Job, h.Err))
		more := len(h.Rows)+h.UnknownFormat == tailRows
		if more && (latest.Outcome == 0 || latest.Success == 0 && succeeded[h.Job]) {
			whole = append(whole, h.Job)
		}
		return true
	})
	if err != nil {
		return by, unread, err
	}
	err = query.EachHistory(ctx, l, whole, "", func(h query.JobRows) bool {
		by[h.Job], unread = latestOf(h.Rows), append(unread, HistoryError(h.Job, h.Err))
		return true
	})
	for job, at := range won { // its row has left the history
		latest := by[job]
		latest.Success = max(latest.Success, at)
		by[job] = latest
	}
	return by, unread, err
}

// latestOf looks at rows, oldest first. Rows of shards and marks are no runs of the job.
func latestOf(rows []ledger.Row) (latest Latest) {
	for _, r := range rows {
		latest.Tick = max(latest.Tick, r.Tick, r.Until)
		if r.TickID != "" || r.Ranged && r.Count == 0 {
			continue
		}
		latest.Outcome = r.Outcome
		if r.Outcome == jobs.OutcomeSucceeded {
			latest.Success = max(latest.Success, r.At)
		}
	}
	return latest
}
