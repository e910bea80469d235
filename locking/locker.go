package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// DefaultTTL is the TTL of an Options that names none.
const DefaultTTL = 15 * time.Second

// maxName is the longest lock name, in bytes.
const maxName = 512

// Config sets a Locker. Its zero value is useful.
type Config struct {
	Margin      time.Duration // see KeeperConfig.Margin; default 1 s
	CallTimeout time.Duration // limit of one call to the store; default 1 s
	Logger      *slog.Logger  // default: none
}

// Options say how to acquire one lock. The zero value tries once for 15 s.
type Options struct {
	// TTL is how long the store keeps the lock for a holder that it hears
	// nothing from. At least three times the locker's margin. Default 15 s.
	TTL time.Duration

	// Wait is how long to wait for a lock that is held, or for a store that
	// cannot be reached. Waiting is by polling with jitter, and in no order;
	// first-come-first-served waiting comes in a later version. 0: try once.
	Wait time.Duration
}

// Locker acquires locks from a store and keeps them alive.
type Locker struct {
	driver Driver
	keeper *Keeper
	cfg    KeeperConfig

	background sync.WaitGroup // releases after unknown answers
	closing    context.Context
	close      context.CancelFunc
}

// New returns a Locker over driver d.
func New(d Driver, cfg Config) *Locker {
	kc := KeeperConfig(cfg).withDefaults()
	l := &Locker{driver: d, keeper: NewKeeper(d, kc), cfg: kc}
	l.closing, l.close = context.WithCancel(context.Background())
	return l
}

// Close ends the background releases and waits for them. It leaves leases
// alone: they are their holders' to release. A locker that is never closed
// leaks nothing for longer than a TTL.
func (l *Locker) Close() {
	l.close()
	l.background.Wait()
}

// Acquire takes the lock called name: 1 to 512 bytes of printable UTF-8.
//
// The error is a *HeldError when somebody else holds it; it wraps
// ErrUnreachable when the store gave no answer, and then the lock is released
// in the background in case it had been granted; it wraps ctx's cause when ctx
// ended first. The lease's context is a child of ctx.
func (l *Locker) Acquire(ctx context.Context, name string, o Options) (*Lease, error) {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if err := l.validate(name, o); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("lock %q: no owner id: %w", name, err)
	}
	a := &acquisition{locker: l, name: name, owner: id.String(), ttl: o.TTL, wait: o.Wait, giveUpAt: time.Now().Add(o.Wait)}
	return a.run(ctx)
}

func (l *Locker) validate(name string, o Options) error {
	var errs []error
	switch {
	case name == "":
		errs = append(errs, errors.New("lock: the name is empty; name what is to be locked"))
	case len(name) > maxName:
		errs = append(errs, fmt.Errorf("lock %.32q...: the name has %d bytes; use at most %d", name, len(name), maxName))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		errs = append(errs, fmt.Errorf("lock %q: the name is not printable UTF-8", name))
	}
	if o.TTL < 3*l.cfg.Margin {
		errs = append(errs, fmt.Errorf("lock %q: ttl %s is less than three times the margin %s; use at least %s", name, o.TTL, l.cfg.Margin, 3*l.cfg.Margin))
	}
	if o.Wait < 0 {
		errs = append(errs, fmt.Errorf("lock %q: wait %s is negative; use 0 to try once", name, o.Wait))
	}
	return errors.Join(errs...)
}

// release gives a lock back, asking again while the outcome is unknown.
func (l *Locker) release(ctx context.Context, name, owner string, closedValid bool) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), releaseTries*l.cfg.CallTimeout)
		defer cancel()
	}
	var err error
	for try := range releaseTries {
		if try > 0 && !pause(ctx, jitter(retryPause)) {
			break
		}
		callCtx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
		err = l.driver.Release(callCtx, name, owner)
		cancel()
		if lostAfterRepeat(err, try > 0, closedValid) {
			return nil
		}
		if !unknownOutcome(err) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case unknownOutcome(err) && !errors.Is(err, ErrUnreachable): // ctx ended
		return fmt.Errorf("release lock %q: %w: %w", name, ErrUnreachable, err)
	}
	return fmt.Errorf("release lock %q: %w", name, err)
}

// releaseLater gives back, in the background, what may have been granted. It
// tries until the grant would lapse by itself or the locker is closed.
func (l *Locker) releaseLater(name, owner string, ttl time.Duration) {
	l.background.Go(func() {
		ctx, cancel := context.WithTimeout(l.closing, ttl)
		defer cancel()
		for ctx.Err() == nil {
			err := l.release(ctx, name, owner, false)
			if !unknownOutcome(err) {
				return // given back, or it was never ours
			}
			if !pause(ctx, jitter(ttl/10)) {
				l.cfg.Logger.Warn("a lock that may have been granted could not be given back; it lapses by itself",
					"name", name, "ttl", ttl, "error", err)
			}
		}
	})
}

// unknownOutcome reports whether err leaves open if the request took effect.
func unknownOutcome(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// pause waits for d and reports whether ctx is still alive then.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns a duration between half of d and one and a half of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}
