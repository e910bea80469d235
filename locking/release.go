package locking

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// releaseTries is how often a release is asked before the caller is told
	// that its outcome is unknown.
	releaseTries = 3

	// releasesAtOnce bounds how many releases ReleaseAll has under way.
	releasesAtOnce = 16
)

// ReleaseAll releases every lease that this locker holds: when a process ends,
// or has lost its right to all of them. It returns the errors of Release,
// joined. A lock acquired while it runs is not released.
func (l *Locker) ReleaseAll(ctx context.Context) error {
	leases := l.keeper.held()
	errs := make([]error, len(leases))
	var wg sync.WaitGroup
	for first := range min(releasesAtOnce, len(leases)) {
		wg.Go(func() {
			for i := first; i < len(leases); i += releasesAtOnce {
				errs[i] = leases[i].Release(ctx)
			}
		})
	}
	wg.Wait()
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

// releaseLater gives back, in the background, what may have been granted, what
// was revoked, or a place in the line. It tries until that would lapse by itself,
// or, once the locker is closed, once more.
func (l *Locker) releaseLater(r Request) {
	l.background.Go(func() {
		end := time.Now().Add(max(r.TTL, Patience))
		for {
			ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallTimeout)
			err := l.driver.Release(ctx, r.Name, r.Owner)
			cancel()
			if !unknownOutcome(err) {
				return // given back, or it was never ours
			}
			again := jitter(max(r.TTL/30, retryPause))
			if time.Now().Add(again).After(end) || !pause(l.closing, again) {
				l.cfg.Logger.Warn("a lock that may have been granted could not be given back; it lapses by itself",
					"name", r.Name, "ttl", r.TTL, "error", err)
				return
			}
		}
	})
}

// unknownOutcome reports whether err leaves open if the request took effect.
func unknownOutcome(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lostAfterRepeat reports whether err is the answer "not held any more" to a
// release that was asked again. If the lease was valid when it was closed, the
// first request, whose reply was lost, has most likely released it, and nobody
// overlapped with the holder's work in any case.
func lostAfterRepeat(err error, repeated, closedValid bool) bool {
	return repeated && closedValid && errors.Is(err, ErrLost)
}

// pause waits for d and reports whether ctx is still alive then.
func pause(ctx context.Context, d time.Duration) bool { return pauseOr(ctx, d, nil) }

// pauseOr is pause that ends early when called gets a value.
func pauseOr(ctx context.Context, d time.Duration, called <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-called:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns a duration between half of d and one and a half of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}
