package failover

import "github.com/escapement/escapement/scheduler/internal/work"

// Runs are the runs on this node.
type Runs interface{ Grants() []work.Grant }

// Reporter holds what a node reports in a new epoch: its runs, their recent ends, the cursors of its jobs, and backfills.
type Reporter struct {
	Runs      Runs
	Cursors   *Cursors
	Ends      *Ends
	Backfills *Backfills
}

// NewReporter makes a reporter without ends, cursors and backfills.
func NewReporter(runs Runs) *Reporter {
	return &Reporter{runs, &Cursors{all: make(map[*work.Job]*knownCursor)}, &Ends{}, &Backfills{}}
}
