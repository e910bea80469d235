package locking

import (
	"context"
	"fmt"
)

// Reenter returns the same hold once more, for a part of the work that acquires and releases the lock by
// itself. Name, owner, token and deadline are the same; the context is a child of ctx.
//
// Releasing the result ends its own context only. The lock is released with the lease that acquired it, and
// when that lease ends, all results end. The error wraps ErrLost when the lease has ended. Go has no
// thread-local state, so pass the lease on, or its Context with Options.Reenter.
func (l *Lease) Reenter(ctx context.Context) (*Lease, error) {
	if !l.Valid() {
		return nil, fmt.Errorf("re-enter lock %q: %w: the lease has ended; acquire it again", l.grant.Name, ErrLost)
	}
	hold := l.hold()
	in := &Lease{keeper: hold.keeper, grant: hold.grant, locker: hold.locker, mode: hold.mode, outer: hold}
	in.base, in.cancel = context.WithCancelCause(ctx)
	in.ctx = &leaseContext{Context: in.base, lease: in}
	hold.keeper.mu.Lock()
	if hold.reentered == nil {
		hold.reentered = make(map[*Lease]bool)
	}
	hold.reentered[in] = true
	ended := hold.cause // ended meanwhile
	hold.keeper.mu.Unlock()
	if ended != nil {
		in.cancel(ended)
	}
	in.stopWatch = context.AfterFunc(hold.base, func() { in.cancel(context.Cause(hold.base)) })
	return in, nil
}

// reenterAs is Reenter for an acquisition in a mode. A reader that asks to write would wait for itself.
func (l *Lease) reenterAs(ctx context.Context, m Mode) (*Lease, error) {
	if m == Write && l.mode == Read {
		return nil, &InputError{Lock: l.grant.Name, Field: "Options.Mode",
			Why: "is write, and this context comes from a reader's lease; release it first, or acquire with Write in the first place"}
	}
	return l.Reenter(ctx)
}

// hold returns the lease that acquired the lock: l, or the one that Reenter was called on.
func (l *Lease) hold() *Lease {
	if l.outer != nil {
		return l.outer
	}
	return l
}

// exit ends a result of Reenter, once. The error wraps ErrLost when the lease was lost before.
func (l *Lease) exit() error {
	l.stopWatch()
	l.keeper.mu.Lock()
	first := l.state == held
	l.state = released
	delete(l.outer.reentered, l)
	l.keeper.mu.Unlock()
	if first && l.Lost() {
		err := fmt.Errorf("%w: %q, token %d: before the re-entered hold was released", ErrLeaseLost, l.grant.Name, l.grant.Token)
		l.cancel(err)
		return fmt.Errorf("release lock %q: %w: its lease ended before the release", l.grant.Name, ErrLost)
	}
	l.cancel(ErrReleased)
	return nil
}

// exited reports whether l is a result of Reenter and has been released.
func (l *Lease) exited() bool {
	if l.outer == nil {
		return false
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return l.state != held
}

// heldKey is the context key of a locker's lease of one lock.
type heldKey struct {
	locker *Locker
	name   string
}

// Value returns the lease for its heldKey, so that Options.Reenter finds it in every context made from the
// lease's. A released result of Reenter is skipped.
func (c *leaseContext) Value(key any) any {
	if k, ok := key.(heldKey); ok && k.locker == c.lease.locker && k.name == c.lease.grant.Name && !c.lease.exited() {
		return c.lease
	}
	return c.Context.Value(key)
}

// heldIn returns the valid lease of lock name that ctx comes from, or nil.
func (l *Locker) heldIn(ctx context.Context, name string) *Lease {
	lease, _ := ctx.Value(heldKey{l, name}).(*Lease)
	if lease == nil || !lease.Valid() {
		return nil
	}
	return lease
}
