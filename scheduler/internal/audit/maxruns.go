package audit

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// maxRuns returns the largest max_runs of the job's versions; 0 when a version has none.
func (t *trial) maxRuns() (most int) {
	for _, v := range t.job.Versions {
		if v.Definition.MaxRuns == 0 {
			return 0
		}
		most = max(most, v.Definition.MaxRuns)
	}
	return most
}

// finished reports whether the books end the job for its max_runs before an instant, with no later
// definition that continues it.
func (t *trial) finished(at time.Time) bool {
	done := false
	for i := range t.books.Rows {
		switch r := &t.books.Rows[i]; {
		case !turns(r):
		case r.Reason == ledger.ReasonMaxRuns:
			done = done || !instant(r.Tick).After(at)
		case r.Next != 0 && !instant(r.Next).After(at):
			done = false
		}
	}
	return done
}

// ranTooOften checks that a job ran no more ticks than its max_runs.
func (t *trial) ranTooOften() {
	most, n := t.maxRuns(), 0
	for _, d := range t.due {
		if len(d.starts)+len(d.rows)+len(d.leases)+len(d.wholes)+len(d.opened) == 0 {
			continue
		}
		if n++; n > most && most > 0 && !t.job.Rewound {
			t.add(KindUnwanted, d.at, "tick %d of a job with max_runs %d was run", n, most)
			return
		}
	}
}

// boundedBy reports whether a row that ends a job for its max_runs can be true.
func (t *trial) boundedBy(row *ledger.Row) bool {
	return row.Reason == ledger.ReasonMaxRuns && t.job.any(func(d jobs.Definition) bool { return d.MaxRuns > 0 })
}
