package runner

import (
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/admission"
)

// runLease is a run's right to go on: as long as it holds its lease, and every resource beside the
// lease.
type runLease struct {
	lease *locking.Lease
	held  atomic.Pointer[admission.Permits] // nil before the run has them, and when it needs none
}

var _ jobs.Lease = (*runLease)(nil)

// Left implements jobs.Lease.
func (r *runLease) Left() time.Duration {
	left := r.lease.Left()
	if held := r.held.Load(); held != nil {
		left = min(left, held.Left())
	}
	return left
}

// Margin implements jobs.Lease.
func (r *runLease) Margin() time.Duration {
	margin := r.lease.Margin()
	if held := r.held.Load(); held != nil {
		margin = min(margin, held.Margin())
	}
	return margin
}
