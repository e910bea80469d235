package locking

import (
	"context"
	"fmt"
)

// Reenter returns the same hold once more, for a part of the work that takes
// the lock and gives it back by itself: same name, owner, token and deadline,
// and a context that is a child of ctx. Releasing it ends its own context only.
// The lock goes back with the lease that acquired it, whose end is the end of
// every hold entered again. The error wraps ErrLost when the lease has ended.
//
// Go has no thread whose hold could be found by itself, so pass the lease on, or
// its Context and Options.Reenter.
func (l *Lease) Reenter(ctx context.Context) (*Lease, error) {
	if !l.Valid() {
		return nil, fmt.Errorf("re-enter lock %q: %w: the lease has ended; acquire it again", l.grant.Name, ErrLost)
	}
	hold := l.hold()
	in := &Lease{keeper: hold.keeper, grant: hold.grant, locker: hold.locker, outer: hold}
	in.base, in.cancel = context.WithCancelCause(ctx)
	in.ctx = &leaseContext{Context: in.base, lease: in}
	hold.keeper.mu.Lock()
	if hold.inner == nil {
		hold.inner = make(map[*Lease]bool)
	}
	hold.inner[in] = true
	ended := hold.cause // while it was entered
	hold.keeper.mu.Unlock()
	if ended != nil {
		in.cancel(ended)
	}
	in.forget = context.AfterFunc(hold.base, func() { in.cancel(context.Cause(hold.base)) })
	return in, nil
}

// hold returns the lease that acquired the lock: l itself, or the one that l is
// entered in.
func (l *Lease) hold() *Lease {
	if l.outer != nil {
		return l.outer
	}
	return l
}

// leave ends a hold that was entered again, once, and says whether it was lost.
func (l *Lease) leave() error {
	l.forget()
	l.keeper.mu.Lock()
	first := l.state == held
	l.state = released
	delete(l.outer.inner, l)
	l.keeper.mu.Unlock()
	if first && l.Lost() {
		err := fmt.Errorf("%w: %q, token %d: while it was entered again", ErrLeaseLost, l.grant.Name, l.grant.Token)
		l.cancel(err)
		return fmt.Errorf("release lock %q: %w: its lease ended before", l.grant.Name, ErrLost)
	}
	l.cancel(ErrReleased)
	return nil
}

// left reports whether a hold that was entered again has been released.
func (l *Lease) left() bool {
	if l.outer == nil {
		return false
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return l.state != held
}

// heldKey asks a context for a locker's lease of one lock.
type heldKey struct {
	locker *Locker
	name   string
}

// Value answers for the lease itself, so that Options.Reenter finds it in every
// context that was made from the lease's. One that was entered again and left
// leaves the answer to the one around it.
func (c *leaseContext) Value(key any) any {
	if k, ok := key.(heldKey); ok && k.locker == c.lease.locker && k.name == c.lease.grant.Name && !c.lease.left() {
		return c.lease
	}
	return c.Context.Value(key)
}

// heldIn returns the lease of lock name that ctx comes from, or nil.
func (l *Locker) heldIn(ctx context.Context, name string) *Lease {
	lease, _ := ctx.Value(heldKey{l, name}).(*Lease)
	if lease == nil || !lease.Valid() {
		return nil
	}
	return lease
}
