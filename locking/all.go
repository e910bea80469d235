package locking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Leases are several leases that AcquireAll acquired together. All methods may be called from many goroutines.
type Leases struct {
	all []*Lease // in the order of the names
	ctx context.Context
}

// AcquireAll acquires all locks of names, or none: when one cannot be acquired, the locks acquired
// so far are released. A name that is given twice counts once. The locks are acquired in the order
// of their names, so that two calls never wait for each other. A lock that is acquired is held, and
// renewed, while the call waits for the remaining locks.
//
// o applies to each lock; o.Wait is the wait for all locks together. The errors are the errors of
// Acquire; also ErrLost, when an acquired lock was lost before the last one was acquired. The
// caller releases the result.
func (l *Locker) AcquireAll(ctx context.Context, names []string, o Options) (*Leases, error) {
	if len(names) == 0 {
		return nil, &InputError{Field: "names", Why: "is empty; give the names of the locks"}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	giveUpAt := time.Now().Add(o.Wait)
	s := &Leases{ctx: ctx}
	for _, name := range slices.Compact(names) {
		// Each context is a child of the one before, so the last one ends with the first lease that ends.
		lease, err := l.Acquire(s.ctx, name, o)
		if err != nil {
			if ctx.Err() == nil && !s.Valid() {
				err = fmt.Errorf("%w: a lock was lost while others were waited for: %w", ErrLost, err)
			}
			return nil, errors.Join(err, s.Release(ctx))
		}
		s.all, s.ctx = append(s.all, lease), lease.Context()
		if o.Wait > 0 {
			o.Wait = max(time.Until(giveUpAt), 1) // the last request is at the end of the wait
		}
	}
	s.ctx = leasesContext{s.ctx, s.all}
	return s, nil
}

// Leases returns the leases in the order of their names, for their tokens.
func (s *Leases) Leases() []*Lease { return slices.Clone(s.all) }

// Context returns the context to work under. It ends with the first lease that ends, with that
// lease's cause.
func (s *Leases) Context() context.Context { return s.ctx }

// Valid reports whether all leases are held at this instant. It needs no network.
func (s *Leases) Valid() bool {
	return !slices.ContainsFunc(s.all, func(l *Lease) bool { return !l.Valid() })
}

// Release releases all locks, the last acquired first. Release may be called again. The error joins
// the errors of Lease.Release, and wraps ErrLost when a lease was lost before.
func (s *Leases) Release(ctx context.Context) error {
	var errs []error
	for _, lease := range slices.Backward(s.all) {
		errs = append(errs, lease.Release(ctx))
	}
	return errors.Join(errs...)
}

// leasesContext is a context whose Err compares clocks for all leases.
type leasesContext struct {
	context.Context
	all []*Lease
}

// Err returns an error from the first local deadline on.
func (c leasesContext) Err() error {
	for _, lease := range c.all {
		if err := lease.Context().Err(); err != nil {
			return err
		}
	}
	return nil
}
