package locking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

type leaseState uint8

// States of a lease; see the drawing in the package comment.
const (
	held     leaseState = iota // being renewed
	released                   // Close or Release was called while it was held
	lost                       // its deadline passed, or the store said that it is gone
)

// Lease is a right that is being kept alive, or that ends by itself when it was
// asked for with Options.Fixed. All methods may be called from many goroutines.
type Lease struct {
	keeper *Keeper
	grant  Grant
	locker *Locker // nil for a lease that is not a Locker's
	outer  *Lease  // of a hold that was entered again; nil: this is the hold itself
	ctx    *leaseContext
	base   context.Context
	cancel context.CancelCauseFunc
	forget func() bool // of a hold that was entered again: stops listening to outer's base

	// Guarded by the keeper's mu.
	state    leaseState
	gone     bool            // lost because the store said so
	inner    map[*Lease]bool // entered again and not left
	cause    error           // of the context, once the lease has ended
	index    int             // in keeper.leases, while held
	due      time.Time       // of the next renewal
	failures int             // renewals unanswered since the last good one
	asked    time.Time       // before the request that set the deadline
	deadline time.Time
	slept    time.Duration // the machine's sleep when the deadline was set
	timer    *time.Timer   // of the deadline

	releasing chan struct{} // of a Locker's, capacity 1: held by the one Release that is under way; guards isBack
	isBack    bool          // the store has said "released"
	later     sync.Once     // has the store asked in the background
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.grant.Name }

// Owner returns the owner value of this acquisition.
func (l *Lease) Owner() string { return l.grant.Owner }

// Token returns the fencing token: send it with every write.
func (l *Lease) Token() Token { return l.grant.Token }

// Context returns the context to work under. It ends when the lease does, with
// a cause: ErrLeaseLost, ErrReleased, or that of the parent context. It has no
// deadline of its own, because renewals move it; see Deadline.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline returns the local deadline as it stands now. Each renewal moves it.
func (l *Lease) Deadline() time.Time {
	hold := l.hold()
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return hold.deadline
}

// Valid reports whether the lease is held at this instant, by comparing the
// clocks: ask it before a step that must not be done twice. It is true while
// the context's parent is over but the lease is still kept.
func (l *Lease) Valid() bool {
	return l.keeper.check(l.hold()) && !l.left()
}

// Lost reports whether the lease ended before it was closed.
func (l *Lease) Lost() bool {
	hold := l.hold()
	l.keeper.check(hold)
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return hold.state == lost
}

// Extend renews the lease now, for its TTL from now, and returns when the store
// has said so: for a fixed lease that needs longer, or before a step that must
// not be interrupted soon. The error wraps ErrLost when the lock is not ours any
// more, and ErrUnreachable when there was no answer; then the old deadline stands.
func (l *Lease) Extend(ctx context.Context) error {
	if !l.Valid() {
		return fmt.Errorf("extend lock %q: %w: the lease has ended; acquire it again", l.grant.Name, ErrLost)
	}
	if err := l.keeper.extend(ctx, l.hold()); err != nil {
		return fmt.Errorf("extend lock %q: %w", l.grant.Name, err)
	}
	return nil
}

// Cancel ends the lease's context with a cause, unless it has ended: whoever works under the lease is to stop. The
// lease is kept until Close.
func (l *Lease) Cancel(cause error) { l.cancel(cause) }

// Close stops keeping the lease and ends its context with cause ErrReleased.
// It does not talk to the store, where the lease lapses by itself unless it is
// released or settled. Closing again, or closing a lost lease, does nothing.
func (l *Lease) Close() {
	if l.outer != nil {
		_ = l.leave() // Release says it
		return
	}
	if l.keeper.check(l) {
		l.keeper.end(l, released, "")
	}
	l.settleContext() // somebody else may be about to
}

// Release closes the lease and gives the lock back, for a lease that came from
// a Locker. It does not end with ctx, so `defer lease.Release(ctx)` works: it asks
// three times at most, Config.CallTimeout each. It returns nil when the lease was held until now and the store has it back, also
// when called again; an error that wraps ErrLost when the lease was lost before, by its local deadline as well, or the lock was not ours any more;
// an error that wraps ErrUnreachable when that could not be learnt: then it is asked
// in the background, for a minute at most and not once the locker is closed, and lapses after its TTL if that is of no avail.
func (l *Lease) Release(ctx context.Context) error {
	if l.outer != nil {
		return l.leave()
	}
	l.Close()
	if l.locker == nil {
		return fmt.Errorf("lease %q did not come from a Locker: settle it where it was granted", l.grant.Name)
	}
	err := l.releaseClosed(context.WithoutCancel(ctx))
	if errors.Is(err, ErrUnreachable) {
		g := l.grant
		l.later.Do(func() {
			l.locker.releaseLater(pendingRelease{Request: Request{Name: g.Name, Owner: g.Owner, TTL: g.TTL, Delay: g.Delay}, told: true})
		})
	}
	return err
}

// releaseClosed is Release of a lease of a locker that was closed, within ctx. Waiting for another Release is part of the
// time that one takes.
func (l *Lease) releaseClosed(ctx context.Context) error {
	select {
	case l.releasing <- struct{}{}:
	default:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.locker.releaseTakes())
		defer cancel()
		select {
		case l.releasing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("release lock %q: %w: another Release is still under way: %w", l.grant.Name, ErrUnreachable, ctx.Err())
		}
	}
	defer func() { <-l.releasing }()
	if l.isBack {
		return l.goneError()
	}
	err := l.locker.release(ctx, l.grant.Name, l.grant.Owner, !l.Lost())
	l.isBack = err == nil
	if gone := l.goneError(); gone != nil && !errors.Is(err, ErrLost) {
		return errors.Join(err, gone)
	}
	return err
}

// goneError is nil unless the lease was lost before it was released: what is left of it is given back all the same.
func (l *Lease) goneError() error {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	switch {
	case l.state != lost:
		return nil
	case l.gone:
		return fmt.Errorf("release lock %q: %w: the store has said so before", l.grant.Name, ErrLost)
	}
	return fmt.Errorf("release lock %q: %w: its lease had ended before", l.grant.Name, ErrLost)
}

// settleContext ends the context of a lease that has ended, for whoever looks
// before the one that ended it has come so far.
func (l *Lease) settleContext() {
	l.keeper.mu.Lock()
	cause := l.cause
	l.keeper.mu.Unlock()
	if cause != nil {
		l.cancel(cause)
	}
}

// leaseContext is a context that looks at the clock itself, so that a process
// that was stopped sees the end before its timers have run.
type leaseContext struct {
	context.Context
	lease *Lease
}

// Err is non-nil from the local deadline on.
func (c *leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.keeper.check(c.lease.hold()) {
		c.lease.hold().settleContext()
		if c.lease.outer != nil {
			c.lease.cancel(context.Cause(c.lease.outer.base))
		}
	}
	return c.Context.Err()
}

// String names the lease, for contexts that are printed.
func (c *leaseContext) String() string {
	return fmt.Sprintf("lease %q, token %d", c.lease.grant.Name, c.lease.grant.Token)
}
