package runner

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// StalledRun is a run in flight that once made no progress for its job's StallAfter.
type StalledRun struct {
	Lease ledger.Run
	After time.Duration // the job's StallAfter
	at    time.Time
}

// StalledRuns are at most so many runs in flight that have stalled, those first that did so first. A run that gets on again is still
// among them.
func (r *Runner) StalledRuns(most int) (list []StalledRun) {
	if r.Stalled() == 0 {
		return nil
	}
	r.Active.each(func(l *activeRun) {
		if at := l.store.firstStalled(); !at.IsZero() {
			list = append(list, StalledRun{l.g.Lease, l.g.Job.StallAfter, at})
		}
	})
	slices.SortFunc(list, func(a, b StalledRun) int { return a.at.Compare(b.at) })
	return list[:min(len(list), most)]
}

// firstStalled is when the run's stall was first reported; zero for never.
func (s *runStore) firstStalled() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalledAt
}
