package redsynclock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// Mutex is a lock that one holder has at a time, over all machines. All methods may be called from many goroutines.
type Mutex struct {
	locker *locking.Locker
	name   string
	expiry time.Duration
	tries  int
	delay  time.Duration
	renew  bool

	mu       sync.Mutex
	lease    *locking.Lease // of the last successful Lock; nil: none
	unlocked bool           // Unlock has released the lease
}

// Name returns the name of the lock.
func (m *Mutex) Name() string { return m.name }

// Value returns the owner value of the last successful Lock; empty before.
func (m *Mutex) Value() string {
	if lease := m.last(); lease != nil {
		return lease.Owner()
	}
	return ""
}

// Until returns the local deadline of the last successful Lock, which each Extend and renewal moves; zero before. The
// lock may be lost earlier: see Context.
func (m *Mutex) Until() time.Time {
	if lease := m.last(); lease != nil {
		return lease.Deadline()
	}
	return time.Time{}
}

// Token returns the fencing token of the last successful Lock; 0 before.
func (m *Mutex) Token() locking.Token {
	if lease := m.last(); lease != nil {
		return lease.Token()
	}
	return 0
}

// Context returns the context to work under while the lock is held. It ends with the lock, with a cause:
// locking.ErrLeaseLost or locking.ErrReleased. It has the values of the context of LockContext, and does not end with
// it. Before a successful Lock it has ended.
func (m *Mutex) Context() context.Context {
	if lease := m.last(); lease != nil {
		return lease.Context()
	}
	return notLocked
}

// notLocked is the context of a mutex that was never locked.
var notLocked = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("%w: the mutex was never locked", locking.ErrReleased))
	return ctx
}()

// Valid reports whether the lock is held. It compares clocks and does not call the store; the error is nil.
func (m *Mutex) Valid() (bool, error) {
	lease := m.last()
	return lease != nil && lease.Valid(), nil
}

// ValidContext is Valid.
func (m *Mutex) ValidContext(context.Context) (bool, error) { return m.Valid() }

// TryLock is TryLockContext with context.Background.
func (m *Mutex) TryLock() error { return m.TryLockContext(context.Background()) }

// TryLockContext acquires the lock, without waiting. Else it is LockContext.
func (m *Mutex) TryLockContext(ctx context.Context) error { return m.acquire(ctx, 0) }

// Lock is LockContext with context.Background.
func (m *Mutex) Lock() error { return m.LockContext(context.Background()) }

// LockContext acquires the lock, and waits for it as long as tries and retry delay allow. A nil ctx
// is context.Background. The error is an *ErrTaken, a *RedisError, or wraps ErrFailed and its
// reason.
func (m *Mutex) LockContext(ctx context.Context) error { return m.acquire(ctx, m.wait()) }

func (m *Mutex) acquire(ctx context.Context, wait time.Duration) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: lock %q: not asked for: %w", ErrFailed, m.name, context.Cause(ctx))
	}
	// The lease's context is a child of Acquire's context, so Acquire gets a context that ends with
	// ctx only during the call.
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	lease, err := m.locker.Acquire(call, m.name, locking.Options{TTL: m.expiry, Wait: wait, Fixed: !m.renew})
	if !detach() && err == nil { // ctx ended after the grant
		_ = lease.Release(ctx)
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel(err)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
		return convert(err, ErrFailed)
	}
	context.AfterFunc(lease.Context(), func() { cancel(nil) })

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease != nil {
		m.lease.Close() // it has ended, or the lock would not have been free
	}
	m.lease, m.unlocked = lease, false
	return nil
}

// Unlock is UnlockContext with context.Background.
func (m *Mutex) Unlock() (bool, error) { return m.UnlockContext(context.Background()) }

// UnlockContext releases the lock and reports whether it was held until then. Otherwise the error wraps
// ErrLockAlreadyExpired, or is a *RedisError: then the release is repeated in the background.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	m.mu.Lock()
	lease, unlocked := m.lease, m.unlocked
	m.mu.Unlock()
	if lease == nil || unlocked {
		return false, ErrLockAlreadyExpired
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := lease.Release(ctx); err != nil {
		return false, convert(err, ErrLockAlreadyExpired)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unlocked = m.unlocked || m.lease == lease
	return true, nil
}

// Extend is ExtendContext with context.Background.
func (m *Mutex) Extend() (bool, error) { return m.ExtendContext(context.Background()) }

// ExtendContext has the lock last another expiry, counted from now, and reports whether it did. Otherwise the error wraps
// ErrExtendFailed, or is a *RedisError: then Until holds as before.
func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	lease := m.last()
	if lease == nil {
		return false, ErrExtendFailed
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := lease.Extend(ctx); err != nil {
		return false, convert(err, ErrExtendFailed)
	}
	return true, nil
}

// last returns the lease of the last successful Lock; nil: none.
func (m *Mutex) last() *locking.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}
