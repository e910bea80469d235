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
	lost                       // its deadline passed, or the store answered "gone"
)

// Lease is the right to a lock, renewed until it is closed or lost. With Options.Fixed it is not
// renewed and ends after its TTL. All methods may be called from many goroutines.
type Lease struct {
	keeper    *Keeper
	grant     Grant
	locker    *Locker // nil for a grant of a Keeper's own caller
	driver    Driver  // that granted it, with locker
	share     Share
	outer     *Lease // the lease that Reenter was called on; nil: this lease acquired the lock
	ctx       *leaseContext
	base      context.Context
	cancel    context.CancelCauseFunc
	stopWatch func() bool // with outer: stops watching outer's context

	// The keeper's mu guards these.
	state     leaseState
	gone      bool            // lost because the store answered "gone"
	reentered map[*Lease]bool // results of Reenter that are not released
	cause     error           // of the context, once the lease has ended
	index     int             // in keeper.leases, while held
	due       time.Time       // of the next renewal
	failures  int             // renewals without an answer since the last good one
	asked     time.Time       // before the request that set the deadline
	deadline  time.Time
	slept     time.Duration // Slept when the deadline was set
	timer     *time.Timer   // of the deadline

	releasing     chan struct{} // a lock, capacity 1: the Release under way; guards storeReleased. Only with locker
	storeReleased bool          // the store has answered "released"
	repeatOnce    sync.Once     // starts the background release
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.grant.Name }

// Owner returns the owner value of this acquisition.
func (l *Lease) Owner() string { return l.grant.Owner }

// Token returns the fencing token: send it with every write.
func (l *Lease) Token() Token { return l.grant.Token }

// Context returns the context to work under. It ends when the lease does, with a cause: ErrLeaseLost,
// ErrReleased, or the parent's. It has no deadline, because renewals move the lease's; see Deadline.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline returns the current local deadline. Each renewal moves it.
func (l *Lease) Deadline() time.Time {
	hold := l.hold()
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return hold.deadline
}

// Left returns the time until the local deadline, less the time that the machine was suspended
// meanwhile. It is not positive once the lease has ended.
func (l *Lease) Left() time.Duration {
	hold := l.hold()
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	left := l.keeper.leftLocked(hold)
	if hold.state != held || l.state != held {
		left = min(left, 0)
	}
	return left
}

// Margin returns the time after the local deadline in which the lock is granted to no other owner:
// KeeperConfig.Margin, or Config.Margin of the Locker.
func (l *Lease) Margin() time.Duration { return l.keeper.cfg.Margin }

// Valid reports whether the lease is held at this instant. It compares clocks and needs no network: call
// it before a step that must not be done twice. It stays true when only the context's parent has ended.
func (l *Lease) Valid() bool {
	return l.keeper.check(l.hold()) && !l.exited()
}

// Lost reports whether the lease ended before it was closed.
func (l *Lease) Lost() bool {
	hold := l.hold()
	l.keeper.check(hold)
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return hold.state == lost
}

// Extend renews the lease for its TTL, counted from now, and returns when the store has answered. Use it
// for a fixed lease, or before a long step. The error wraps ErrLost when the lease has ended, and
// ErrUnreachable when the store did not answer; then the old deadline holds.
func (l *Lease) Extend(ctx context.Context) error {
	if !l.Valid() {
		return fmt.Errorf("extend lock %q: %w: the lease has ended; acquire it again", l.grant.Name, ErrLost)
	}
	if err := l.keeper.extend(ctx, l.hold()); err != nil {
		return fmt.Errorf("extend lock %q: %w", l.grant.Name, err)
	}
	return nil
}

// Cancel ends the lease's context with a cause. The lease is still renewed until Close. It does nothing
// when the context has ended.
func (l *Lease) Cancel(cause error) { l.cancel(cause) }

// Close stops the renewals and ends the context, with cause ErrReleased. It does not call the store: there
// the lease lapses by itself, unless it is released or settled. Closing a closed or lost lease does
// nothing.
func (l *Lease) Close() {
	if l.outer != nil {
		_ = l.exit() // Release reports the loss
		return
	}
	if l.keeper.check(l) {
		l.keeper.end(l, released, "")
	}
	l.cancelContext() // the goroutine that ended the lease may not have come so far
}

// Release closes the lease and gives the lock back. It does not end with ctx, so that
// `defer lease.Release(ctx)` works; it takes at most three calls of Config.CallTimeout. It may be called
// again.
//
// Release returns nil when the lease was valid until now and the store has released the lock. The
// error wraps ErrLost when the lease was lost before; the release is sent to the store all the
// same. The error wraps ErrUnreachable when the store did not answer: the release is then repeated
// in the background, for a minute at most, unless the locker is closed; after that the lock lapses.
// Only leases of a Locker can be released.
func (l *Lease) Release(ctx context.Context) error {
	if l.outer != nil {
		return l.exit()
	}
	l.Close()
	if l.locker == nil {
		return fmt.Errorf("release %q: the lease did not come from a Locker; end it where it was granted", l.grant.Name)
	}
	err := l.releaseClosed(context.WithoutCancel(ctx))
	if errors.Is(err, ErrUnreachable) {
		g := l.grant
		l.repeatOnce.Do(func() {
			l.locker.releaseLater(pendingRelease{Request: Request{Name: g.Name, Owner: g.Owner, TTL: g.TTL, Delay: g.Delay}, driver: l.driver, reported: true})
		})
	}
	return err
}

// releaseClosed releases a lease that was closed, within ctx. While another Release is under way, it waits
// for that one, at most as long as one Release takes.
func (l *Lease) releaseClosed(ctx context.Context) error {
	select {
	case l.releasing <- struct{}{}:
	default:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.locker.releaseLimit())
		defer cancel()
		select {
		case l.releasing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("release lock %q: %w: another Release of it has no answer yet: %w", l.grant.Name, ErrUnreachable, ctx.Err())
		}
	}
	defer func() { <-l.releasing }()
	if l.storeReleased {
		return l.goneError()
	}
	err := l.locker.release(ctx, l.driver, l.grant, !l.Lost())
	l.storeReleased = err == nil
	if gone := l.goneError(); gone != nil && !errors.Is(err, ErrLost) {
		return errors.Join(err, gone)
	}
	return err
}

// goneError returns an error if the lease was lost before it was released.
func (l *Lease) goneError() error {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	switch {
	case l.state != lost:
		return nil
	case l.gone:
		return fmt.Errorf("release lock %q: %w: a renewal was answered so", l.grant.Name, ErrLost)
	}
	return fmt.Errorf("release lock %q: %w: its lease ended before the release", l.grant.Name, ErrLost)
}

// cancelContext ends the context of a lease that has ended, in case end has not come so far.
func (l *Lease) cancelContext() {
	l.keeper.mu.Lock()
	cause := l.cause
	l.keeper.mu.Unlock()
	if cause != nil {
		l.cancel(cause)
	}
}

// leaseContext is a context whose Err compares clocks, so that a stopped process finds the lease ended
// before its timers have run.
type leaseContext struct {
	context.Context
	lease *Lease
}

// Err returns an error from the local deadline on.
func (c *leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.keeper.check(c.lease.hold()) {
		c.lease.hold().cancelContext()
		if c.lease.outer != nil {
			c.lease.cancel(context.Cause(c.lease.outer.base))
		}
	}
	return c.Context.Err()
}

// String names the lock and its token, for contexts that are printed.
func (c *leaseContext) String() string {
	return fmt.Sprintf("lease %q, token %d", c.lease.grant.Name, c.lease.grant.Token)
}
