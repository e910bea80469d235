package locking

import (
	"errors"
	"fmt"
	"time"
)

// The three answers that must never be mistaken for each other are ErrHeld
// (somebody has it), ErrUnreachable (nobody knows) and ErrLost (it was ours
// and is not any more).
var (
	// ErrHeld is returned when somebody else holds the lock. The error is a
	// *HeldError, which says who and for how long at least.
	ErrHeld = errors.New("held by another")

	// ErrUnreachable is returned when the store gave no usable answer: whether
	// the request took effect is not known. Asking again with the same owner
	// is safe.
	ErrUnreachable = errors.New("store unreachable")

	// ErrLost is returned by a release when the lock was not ours any more:
	// it had lapsed, or somebody else holds it.
	ErrLost = errors.New("not held any more")

	// ErrLeaseLost is the cause of a lease's context when the lease could not
	// be renewed before its local deadline, or the store said that it is gone.
	// The cause wraps it and adds the name and the reason.
	ErrLeaseLost = errors.New("lease lost")

	// ErrReleased is the cause of a lease's context after Close or Release: an
	// end, not a failure.
	ErrReleased = errors.New("lease released")
)

// HeldError says who holds a lock that could not be had. It matches ErrHeld.
type HeldError struct {
	Name   string        // the lock's name
	Owner  string        // the owner value of whoever holds it
	Until  time.Duration // time left of the holder's lease, which it may renew
	Waited time.Duration // how long Acquire waited for it
}

// Error names the lock, its holder and the time left.
func (e *HeldError) Error() string {
	if e.Waited > 0 {
		return fmt.Sprintf("lock %q: still %v after waiting %s (%s, %s left); wait longer with Options.Wait, or try later",
			e.Name, ErrHeld, e.Waited, e.Owner, e.Until)
	}
	return fmt.Sprintf("lock %q: %v (%s, %s left); wait for it with Options.Wait or try later",
		e.Name, ErrHeld, e.Owner, e.Until)
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
