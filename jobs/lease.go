package jobs

import "time"

// Lease is the time that a run has, for work outside of its function that must end before the run's
// lease can be another's, such as a command. It is safe for concurrent use while the function has
// not returned.
type Lease interface {
	// Left returns how long the run may go on if its lease is renewed no more. It is not positive
	// once the lease has ended. It counts on this machine's monotonic clock and needs no network.
	Left() time.Duration
	// Margin returns how long after that nobody else is granted the lease.
	Margin() time.Duration
}

// Lease returns the time that the run has; nil outside of a scheduler. A function that looks at its
// context needs no more than that.
func (r *Run) Lease() Lease { return r.info.Lease }
