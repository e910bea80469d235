package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

// defaultTTL is the TTL of Options that set none.
const defaultTTL = 15 * time.Second

// Config holds the settings of a Locker. The zero value is useful.
type Config struct {
	Margin      time.Duration // see KeeperConfig.Margin; at most 10 days; default 1 s
	CallTimeout time.Duration // limit of one call to the store; default 1 s
	Logger      *slog.Logger  // see KeeperConfig.Logger; default slog.Default()
}

// check returns an *InputError for each fault, joined.
func (c Config) check() error {
	var errs []error
	refuse := func(field string, d time.Duration) {
		if d < 0 {
			errs = append(errs, &InputError{Field: "Config." + field, Why: fmt.Sprintf("is %s, which is negative; 0 means 1s", d)})
		}
	}
	refuse("Margin", c.Margin)
	refuse("CallTimeout", c.CallTimeout)
	if most := maxTTL / 3; c.Margin > most {
		errs = append(errs, &InputError{Field: "Config.Margin", Why: fmt.Sprintf("is %s; use at most %s, a third of the longest TTL", c.Margin, most)})
	}
	return errors.Join(errs...)
}

// Options describe how to acquire one lock. The zero value tries once, and renews the lock until it
// is released, with a TTL of 15 s.
type Options struct {
	// TTL is how long the store keeps the lock without a renewal. At least three times the locker's
	// margin, at most 30 days. Default 15 s.
	TTL time.Duration

	// Wait is how long to wait for a lock that is held, or for a store that is unreachable. A store
	// with queues (redislock) serves waiters in the order in which they came. Without queues each
	// waiter polls, with jitter, and the order is random. 0: the first answer counts; a call without
	// an answer is repeated once.
	Wait time.Duration

	// Fixed switches renewals off: the lease ends after TTL, unless Extend is called.
	Fixed bool

	// Delay is how much longer the lock stays taken when its holder was lost (crashed, or cut off), so
	// that the holder's last writes can arrive. A release ends the delay at once. For work that no
	// fence protects. At most 30 days. Default 0.
	Delay time.Duration

	// Holder is a text about the caller, for operators: "billing on host-3". At most 128 bytes.
	// Default empty.
	Holder string

	// After is a token that a guard has accepted; the granted token is larger. Set it when a guard has
	// refused the token of a lock that was acquired just now, which means that the store has lost its
	// data. Default 0.
	After Token

	// Permits makes the name a semaphore: so many hold it at once, at most MaxPermits, each with a
	// lease and a token of its own. All contenders of a name give the same number; a request with
	// another number is refused with an *InputError while the name has a holder or a waiter. Needs
	// a Sharer (redislock). 0 or 1: a lock.
	Permits int

	// Mode makes the name a read-write lock: readers share it, a writer has it alone, and both are served in
	// the order in which they came, so that a waiting writer is not overtaken. All contenders of a name use
	// Read or Write. Needs a Sharer (redislock). Default Exclusive: a lock, or a semaphore.
	Mode Mode

	// Reenter returns the caller's own hold once more if ctx comes from the Context of a valid
	// lease of this lock: see Lease.Reenter. A request for more than the lease holds is refused
	// with an *InputError: a lock or Write inside a reader's or a permit's lease, a permit of
	// fewer, a reader inside a semaphore or a permit inside a reader, a longer Delay, an After that
	// is not below the token. TTL, Wait, Fixed and Holder do nothing: the lease is the holder's
	// own. Default false: a second Acquire by the holder waits for the holder's own release.
	Reenter bool
}

// Locker acquires locks from a store and renews them. All methods may be called from many goroutines.
type Locker struct {
	driver   Driver
	notifier Notifier // the driver, or nil
	sharer   Sharer   // the driver, or nil
	keeper   *Keeper
	shares   *Keeper // renews semaphores and read-write locks; nil without sharer
	cfg      KeeperConfig

	refused error // the fault in the Config: the error of each call

	background *background
}

// New returns a Locker over driver d. The caller closes it. With a Config that has a negative or too
// long time, each call returns an error that holds an *InputError.
func New(d Driver, cfg Config) *Locker {
	kc := KeeperConfig(cfg).withDefaults()
	l := &Locker{driver: d, keeper: NewKeeper(d, kc), cfg: kc, refused: cfg.check(), background: newBackground()}
	l.notifier, _ = d.(Notifier)
	if l.sharer, _ = d.(Sharer); l.sharer != nil {
		l.shares = NewKeeper(l.sharer.Share(Share{Mode: Read}), kc)
	}
	return l
}

// Close ends the background work of the locker and its driver: each background release sends one
// more request, and the connection for notifications is closed. Close waits for both, two calls at
// most; close the store's clients afterwards. Close does not release leases: call Release or
// ReleaseAll before. A locker that is never closed leaks nothing for longer than a TTL.
func (l *Locker) Close() {
	var closing sync.WaitGroup
	if l.notifier != nil {
		closing.Go(l.notifier.Close) // takes as long as a call when the store hangs
	}
	l.background.close()
	closing.Wait()
	if d, ok := l.driver.(interface{ Wait() }); ok {
		d.Wait()
	}
}

// Acquire takes the lock called name: 1 to 512 bytes of printable UTF-8. The lease's context is a
// child of ctx. The caller releases the lease.
//
// Errors, in the order in which to look for them:
//
//   - ctx's cause, when ctx ended first; the store's last answer is wrapped too.
//   - *InputError, for each argument that was refused.
//   - ErrHeld (a *HeldError), when another holder has the lock.
//   - ErrLost, when the grant was revoked before its answer arrived, and o.Wait is over.
//   - ErrUnreachable, when the store gave no answer. The lock may have been granted, so it is released
//     in the background.
//   - Otherwise the store's own refusal: no permission, no memory, a key of another kind.
func (l *Locker) Acquire(ctx context.Context, name string, o Options) (*Lease, error) {
	return l.acquire(ctx, name, 0, o)
}

// Try acquires the lock called name without waiting. o.Wait is ignored; else it is Acquire.
func (l *Locker) Try(ctx context.Context, name string, o Options) (*Lease, error) {
	o.Wait = 0
	return l.Acquire(ctx, name, o)
}

// Do runs f under the lock called name, and then releases it. f gets the lease's context and the lease.
//
// When the lock could not be acquired, f has not run, and Do returns the error of Acquire.
// Otherwise Do returns f's error, joined with the error of the release, which wraps ErrNotReleased.
// So look for ErrNotReleased first: f has run then, and Do must not be repeated. A nil f is an
// *InputError.
func (l *Locker) Do(ctx context.Context, name string, o Options, f func(ctx context.Context, lease *Lease) error) (err error) {
	if f == nil {
		return &InputError{Lock: shortened(name), Field: "f", Why: "is nil; give the function to run under the lock"}
	}
	lease, err := l.Acquire(ctx, name, o)
	if err != nil {
		return err
	}
	defer func() {
		if released := lease.Release(ctx); released != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrNotReleased, released))
		}
	}()
	return f(lease.Context(), lease)
}

// TakeOver takes the lock called name at once from the holder of the grant with token from. A free lock
// is acquired.
//
// TakeOver is for an operator who is certain that the holder is gone. A holder that still runs
// loses its lease at its next renewal, or at its local deadline; until then two holders work, and
// only the larger token distinguishes the new holder. To let the old holder end first, use Revoke
// and then Acquire. The error is a *HeldError when another grant holds the lock.
func (l *Locker) TakeOver(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	if from <= 0 {
		return nil, &InputError{Lock: shortened(name), Field: "from", Why: fmt.Sprintf("is %d; give the token of the grant to take over, as Owner shows it", from)}
	}
	o.Reenter = false
	return l.acquire(ctx, name, from, o)
}

func (l *Locker) acquire(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	share := Share{Permits: o.Permits, Mode: o.Mode}
	if err := errors.Join(l.refused, o.check(name, l.cfg.Margin), share.check(name, l.sharer)); err != nil {
		return nil, err
	}
	if o.Reenter {
		if outer := l.heldIn(ctx, name); outer != nil {
			return outer.reenterAs(ctx, o)
		}
	}
	lease, err := l.acquireAsNewOwner(ctx, name, from, o)
	if outer := l.heldIn(ctx, name); outer != nil && errors.Is(err, ErrHeld) {
		if covered := outer.covers(o); covered != nil {
			return nil, fmt.Errorf("%w: this context comes from a lease that holds it: %s", err, covered.Error())
		}
		err = fmt.Errorf("%w: this context comes from the lease that holds it; set Options.Reenter, or call Reenter of that lease", err)
	}
	return lease, err
}

// acquireAsNewOwner acquires under a new owner value. A grant that was revoked before its answer arrived
// is lost for that owner, so the next attempt has another one.
func (l *Locker) acquireAsNewOwner(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	giveUpAt := time.Now().Add(o.Wait)
	driver, keeper := l.driver, l.keeper
	share := Share{Permits: o.Permits, Mode: o.Mode}
	if !share.isLock() {
		driver, keeper = l.sharer.Share(share), l.shares
	}
	for {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("lock %q: make an owner id: %w", name, err)
		}
		a := &acquisition{
			locker: l, driver: driver, keeper: keeper, share: share, fixed: o.Fixed, wait: o.Wait, giveUpAt: giveUpAt,
			request: Request{Name: name, Owner: id.String(), Holder: o.Holder, TTL: o.TTL, Delay: o.Delay, After: o.After, From: from},
		}
		lease, err := a.run(ctx)
		if !errors.Is(err, ErrLost) || !time.Now().Before(giveUpAt) || !pause(ctx, jitter(retryPause)) {
			return lease, err
		}
	}
}

// Owner returns the holder of the lock called name; of several holders, the one with the smallest
// token. For a free lock, Ownership.Held returns false. The answer may be out of date when the
// caller reads it.
func (l *Locker) Owner(ctx context.Context, name string) (Ownership, error) {
	if err := errors.Join(l.refused, checkName(name)); err != nil {
		return Ownership{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	o, err := l.driver.Owner(ctx, name)
	if err != nil {
		return o, named(name, err)
	}
	return o, nil
}

// Revoke requests the end of the grant with this token: the lease is lost at its next renewal.
//
// Revoke returns when the store has recorded the request. The lock is free when its holder has released
// it, or when it has lapsed: TTL and Delay after the last renewal. A fixed lease ends when it would
// anyway. The error wraps ErrLost when that grant does not hold the lock.
func (l *Locker) Revoke(ctx context.Context, name string, token Token) error {
	if err := errors.Join(l.refused, checkName(name)); err != nil {
		return err
	}
	if token <= 0 {
		return &InputError{Lock: shortened(name), Field: "token", Why: fmt.Sprintf("is %d; give the token of the grant, as Owner shows it", token)}
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	if err := l.driver.Revoke(ctx, name, token); err != nil {
		return fmt.Errorf("lock %q, token %d: %w", name, token, err)
	}
	return nil
}
