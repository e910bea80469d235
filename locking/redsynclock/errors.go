package redsynclock

import (
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
)

var (
	// ErrFailed is returned by Lock when its context ended, or the arguments were refused.
	ErrFailed = errors.New("redsync: failed to acquire lock")

	// ErrExtendFailed is returned by Extend when the lock is not held any more.
	ErrExtendFailed = errors.New("redsync: failed to extend lock")

	// ErrLockAlreadyExpired is returned by Unlock when the lock is not held any more, or was not acquired.
	ErrLockAlreadyExpired = errors.New("redsync: failed to unlock, lock was already expired")
)

// ErrTaken is returned by Lock, as a pointer, when another holder has the lock.
type ErrTaken struct {
	Nodes []int // always one 0: the locker is one node
	Err   error // a *locking.HeldError, with the holder
}

// Error names the holder.
func (err ErrTaken) Error() string { return fmt.Sprintf("lock already taken: %v", err.Err) }

// Unwrap returns Err.
func (err ErrTaken) Unwrap() error { return err.Err }

// RedisError is returned, as a pointer, when the store did not answer.
type RedisError struct {
	Node int   // always 0: the locker is one node
	Err  error // wraps locking.ErrUnreachable
}

// Error is the text of Err, with the node.
func (err RedisError) Error() string { return fmt.Sprintf("node #%d: %v", err.Node, err.Err) }

// Unwrap returns Err.
func (err RedisError) Unwrap() error { return err.Err }

// convert returns redsync's error for one of a locker: wrapped in kind, if redsync has no other for it.
func convert(err, kind error) error {
	switch {
	case errors.Is(err, locking.ErrHeld):
		return &ErrTaken{Nodes: []int{0}, Err: err}
	case errors.Is(err, locking.ErrUnreachable):
		return &RedisError{Err: err}
	}
	return fmt.Errorf("%w: %w", kind, err)
}
