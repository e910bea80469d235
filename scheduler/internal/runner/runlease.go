package runner

import (
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/admission"
)

// runLease is the time that a run has: as long as it holds its lease, and all that it needs beside
// that.
type runLease struct {
	lease *locking.Lease
	held  atomic.Pointer[admission.Permits] // nil before the run has it, and where it needs nothing
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
