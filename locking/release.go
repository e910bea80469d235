package locking

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// releaseTries is how many requests Release sends before it reports an unknown outcome.
	releaseTries = 3

	// releasesAtOnce bounds the concurrent releases of ReleaseAll. The number is large, so that
	// locks on an unreachable master do not delay locks on other masters.
	releasesAtOnce = 128
)

// ReleaseAll ends the contexts of all leases of this locker at once, and then releases their locks:
// when a process ends, or may not hold them any more.
//
// ReleaseAll repeats its requests until ctx is over; when ctx is over already, for as long as one
// Release may take. A lock that could not be released by then lapses after its TTL. The error joins
// the errors of Release. A lock acquired while ReleaseAll runs is not released.
func (l *Locker) ReleaseAll(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), l.releaseLimit())
		defer cancel()
	}
	leases := l.keeper.held()
	if l.shares != nil {
		leases = append(leases, l.shares.held()...)
	}
	for _, lease := range leases {
		lease.Close()
	}
	errs := make([]error, len(leases))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(releasesAtOnce, len(leases)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(leases)); i = next.Add(1) - 1 {
				errs[i] = leases[i].releaseClosed(ctx)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// releaseLimit is the longest that one Release takes.
func (l *Locker) releaseLimit() time.Duration {
	return releaseTries * (min(l.cfg.CallTimeout, maxTTL) + retryPause)
}

// release gives the grant back at d, and repeats the request while the outcome is unknown.
// closedValid: the lease was valid when it was closed.
func (l *Locker) release(ctx context.Context, d Driver, g Grant, closedValid bool) error {
	var err error
	for try := range releaseTries {
		if try > 0 && !pause(ctx, jitter(retryPause)) {
			break
		}
		callCtx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
		err = d.Release(callCtx, g.Name, g.Owner)
		cancel()
		if try > 0 && closedValid && errors.Is(err, ErrLost) {
			return nil // most likely an earlier request, whose reply was lost, has released the lock
		}
		if !unknownOutcome(err) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case unknownOutcome(err) && !errors.Is(err, ErrUnreachable): // ctx ended
		return fmt.Errorf("release lock %q: %w: %w", g.Name, ErrUnreachable, err)
	}
	return named(g.Name, err)
}

// unknownOutcome reports whether err leaves open if the request took effect.
func unknownOutcome(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// pause waits for d and reports whether ctx is still alive then.
func pause(ctx context.Context, d time.Duration) bool { return pauseOr(ctx, d, nil) }

// pauseOr waits for d, for early or for the end of ctx, and reports whether d has passed.
func pauseOr(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
		return false
	case <-ctx.Done():
		return false
	}
}

// jitter returns a duration between half of d and one and a half of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}
