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

// DefaultTTL is the TTL of an Options that names none.
const DefaultTTL = 15 * time.Second

// Config sets a Locker. Its zero value is useful.
type Config struct {
	Margin      time.Duration // see KeeperConfig.Margin; default 1 s
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

// Options say how to acquire one lock. The zero value tries once, and then
// keeps the lock alive, 15 s at a time.
type Options struct {
	// TTL is how long the store keeps the lock for a holder that it hears
	// nothing from. At least three times the locker's margin, at most 30 days.
	// Default 15 s.
	TTL time.Duration

	// Wait is how long to wait for a lock that is held, or for a store that
	// cannot be reached. In a store with lines (redislock) those who wait get the
	// lock in the order in which they came; elsewhere by asking again, with
	// jitter, in no order. 0: one answer is enough; a call that got none is made once
	// more.
	Wait time.Duration

	// Fixed keeps nothing alive: the lease ends after TTL, unless Extend is called.
	Fixed bool

	// Delay is how much longer nobody else can have the lock when its holder was
	// lost (crashed, cut off): time for what it had sent to arrive. A release
	// ends it at once. For work that no guard protects. Default 0, at most 30 days.
	Delay time.Duration

	// Holder says who asks, for people who look at the lock: "billing on host-3".
	// At most 128 bytes. Default empty.
	Holder string

	// After is a token that a guard answered: the one granted will be larger. Set
	// it only when a guard has refused the token of a lock just acquired; that
	// heals a store that has lost all it knew. Default 0.
	After Token

	// Reenter returns the caller's own hold again, when ctx comes from a valid
	// lease of this very lock (from its Context): see Lease.Reenter. Default false:
	// then a holder that asks again waits for itself, as anybody does. The hold is
	// as it was acquired: TTL, Fixed, Delay, Holder and After of o do nothing then.
	Reenter bool
}

// Locker acquires locks from a store and keeps them alive.
type Locker struct {
	driver Driver
	waker  Waker // the driver, or nil
	keeper *Keeper
	cfg    KeeperConfig

	refused error // what is wrong with its Config: the answer to each call

	background releases
}

// New returns a Locker over driver d. One of a Config with a time that is negative or too long answers
// each call with an error that holds an *InputError.
func New(d Driver, cfg Config) *Locker {
	kc := KeeperConfig(cfg).withDefaults()
	l := &Locker{driver: d, keeper: NewKeeper(d, kc), cfg: kc, refused: cfg.check()}
	l.waker, _ = d.(Waker)
	l.background.closing = make(chan struct{})
	return l
}

// Close lets each background release ask once more, closes what the store calls
// over, and waits for both. It leaves leases alone: they are their holders' to
// release, or ReleaseAll's. A locker that is never closed leaks nothing for longer
// than a TTL.
func (l *Locker) Close() {
	var calls sync.WaitGroup
	if l.waker != nil {
		calls.Go(l.waker.Close) // a store that hangs has it take as long as a call
	}
	l.background.close()
	calls.Wait()
}

// Acquire takes the lock called name: 1 to 512 bytes of printable UTF-8.
//
// The error is a *HeldError when somebody else holds it; it wraps
// ErrUnreachable when the store gave no answer, and then the lock is released
// in the background in case it had been granted; it wraps ErrLost when somebody
// revoked the grant before it was heard of here, and o.Wait is over; it wraps ctx's cause when ctx
// ended first, beside what the store had answered last, so look for the cause first; it holds an *InputError for each argument that was refused; else it
// is what the store refused with (no right, no memory, a key of something else).
// The lease's context is a child of ctx.
func (l *Locker) Acquire(ctx context.Context, name string, o Options) (*Lease, error) {
	return l.acquire(ctx, name, 0, o)
}

// Try is Acquire without waiting, whatever o says.
func (l *Locker) Try(ctx context.Context, name string, o Options) (*Lease, error) {
	o.Wait = 0
	return l.Acquire(ctx, name, o)
}

// Do runs f while it holds the lock called name, and then gives it back. f gets
// the lease and its context. Do returns what Acquire returns when the lock could
// not be had; else f's error, joined with one that wraps ErrLost when the lock
// was lost before f returned, or with what else the release said. What comes of the
// release wraps ErrNotReleased too: whoever repeats Do asks for that first. A nil f is an *InputError, and the store is not asked.
func (l *Locker) Do(ctx context.Context, name string, o Options, f func(ctx context.Context, lease *Lease) error) (err error) {
	if f == nil {
		return &InputError{Lock: shortened(name), Field: "f", Why: "is nil; give the function that the lock is for"}
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

// TakeOver takes the lock called name from the holder of the grant with token
// from, at once: for an operator who knows that the holder is gone, or will do
// no harm. Whoever holds it is told by its next renewal, at its local deadline
// at the latest; until then only the larger token tells the two apart. To let
// the holder end first, use Revoke and then Acquire. The error is a *HeldError
// when another grant holds the lock; a free lock is acquired.
func (l *Locker) TakeOver(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	if from <= 0 {
		return nil, &InputError{Lock: shortened(name), Field: "from", Why: fmt.Sprintf("is %d; name the token of the grant to be taken over, see Owner", from)}
	}
	o.Reenter = false
	return l.acquire(ctx, name, from, o)
}

func (l *Locker) acquire(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if err := errors.Join(l.refused, o.check(name, l.cfg.Margin)); err != nil {
		return nil, err
	}
	if o.Reenter {
		if outer := l.heldIn(ctx, name); outer != nil {
			return outer.Reenter(ctx)
		}
	}
	lease, err := l.acquireAnew(ctx, name, from, o)
	if errors.Is(err, ErrHeld) && l.heldIn(ctx, name) != nil {
		err = fmt.Errorf("%w: by the lease that this context comes from; set Options.Reenter, or pass the lease on and use its Reenter", err)
	}
	return lease, err
}

// acquireAnew asks until there is an answer, as a new owner each time when what was granted was taken away before this had heard of it.
func (l *Locker) acquireAnew(ctx context.Context, name string, from Token, o Options) (*Lease, error) {
	giveUpAt := time.Now().Add(o.Wait)
	for {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("lock %q: no owner id: %w", name, err)
		}
		a := &acquisition{
			locker: l, fixed: o.Fixed, wait: o.Wait, giveUpAt: giveUpAt,
			request: Request{Name: name, Owner: id.String(), Holder: o.Holder, TTL: o.TTL, Delay: o.Delay, After: o.After, From: from},
		}
		lease, err := a.run(ctx)
		if !errors.Is(err, ErrLost) || !time.Now().Before(giveUpAt) || !pause(ctx, jitter(retryPause)) {
			return lease, err
		}
	}
}

// Owner says who holds the lock called name. Nobody: an Ownership that is not
// Held. It is a look, and may be out of date when it is read.
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

// Revoke asks the holder of the grant with this token to end: its lease is lost
// at its next renewal. Others can have the lock when it has given it back, as its
// work ends, or when it has lapsed: TTL, and Delay, after the last renewal. It returns
// when the store knows, not when the lock is free. The error wraps ErrLost when that
// grant does not hold the lock.
func (l *Locker) Revoke(ctx context.Context, name string, token Token) error {
	if err := errors.Join(l.refused, checkName(name)); err != nil {
		return err
	}
	if token <= 0 {
		return &InputError{Lock: shortened(name), Field: "token", Why: fmt.Sprintf("is %d; name the token of the grant, see Owner", token)}
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	if err := l.driver.Revoke(ctx, name, token); err != nil {
		return fmt.Errorf("lock %q, token %d: %w", name, token, err)
	}
	return nil
}
