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
	in := &Lease{keeper: hold.keeper, grant: hold.grant, locker: hold.locker, share: hold.share, outer: hold}
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

// reenterAs is Reenter for an acquisition with o, which must not promise more than l holds.
func (l *Lease) reenterAs(ctx context.Context, o Options) (*Lease, error) {
	//guard:reenter-covered P4 a hold that others may share is not taken for one that excludes them
	if err := l.covers(o); err != nil {
		return nil, err
	}
	return l.Reenter(ctx)
}

// covers returns an *InputError when o promises its holder more than l does.
func (l *Lease) covers(o Options) error {
	const cure = "release that one first, or acquire the stronger one in the first place"
	refuse := func(field, why string, args ...any) error {
		return &InputError{Lock: l.grant.Name, Field: "Options." + field, Why: fmt.Sprintf(why, args...)}
	}
	asked := Share{Permits: o.Permits, Mode: o.Mode}
	switch {
	case !l.share.covers(asked):
		field := "Permits"
		if asked.Mode != Exclusive || l.share.Mode != Exclusive {
			field = "Mode"
		}
		return refuse(field, "asks for %s, and this context comes from a lease of %s, beside which others hold it; %s", asked, l.share, cure)
	case o.Delay > l.grant.Delay:
		return refuse("Delay", "is %s, and this context comes from a lease with %s; %s", o.Delay, l.grant.Delay, cure)
	case o.After >= l.grant.Token:
		return refuse("After", "is %d, and this context comes from a lease with token %d, which the guard refuses; release it, and acquire it again", o.After, l.grant.Token)
	}
	return nil
}

// hold returns the lease that acquired the lock: l, or the outer lease of a result of Reenter.
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
