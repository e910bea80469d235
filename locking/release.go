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
	// releaseTries is how often a release is asked before the caller is told
	// that its outcome is unknown.
	releaseTries = 3

	// releasesAtOnce bounds how many releases ReleaseAll has under way: many, because those at a master
	// that does not answer are not to keep the others waiting.
	releasesAtOnce = 128
)

// ReleaseAll releases every lease that this locker holds: when a process ends,
// or has lost its right to all of them. Their contexts end at once, and then the
// locks are given back, until ctx is over; if it is over already, for as long as
// one Release would take. What could not be given back by then lapses after its
// TTL. It returns the errors of Release, joined. A lock acquired while it runs is
// not released.
func (l *Locker) ReleaseAll(ctx context.Context) error {
	ctx, cancel := l.still(ctx)
	defer cancel()
	leases := l.keeper.held()
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

// still is ctx, or when that is over, one with a time limit of its own.
func (l *Locker) still(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), l.releaseTakes())
}

// releaseTakes is how long one Release may take.
func (l *Locker) releaseTakes() time.Duration {
	return releaseTries * (min(l.cfg.CallTimeout, maxTTL) + retryPause)
}

// release gives a lock back, asking again while the outcome is unknown.
func (l *Locker) release(ctx context.Context, name, owner string, closedValid bool) error {
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
	return named(name, err)
}

// leftover is what is given back in the background: what may have been granted or be
// held still, or a place in the line.
type pendingRelease struct {
	Request

	// straggler: an acquire may still be on its way, over a connection that lost a
	// packet, and lock for nobody after the release; so what is "not ours" is asked
	// for once more, a third of the time later.
	straggler bool
	told      bool // the caller knows that it may lapse
}

// releaseLater gives something back in the background. Once the locker is closed it asks once, and keeps the caller
// waiting for that; for a Release, which has asked itself, not at all.
func (l *Locker) releaseLater(o pendingRelease) {
	if o.told && l.background.over() {
		return
	}
	if !l.background.start(func(closing <-chan struct{}, rest func() bool) { l.giveBack(o, closing, rest) }) {
		l.notGivenBack(o, fmt.Errorf("%d others are being given back", mostReleases))
	}
}

// giveBack releases until the store has said so, for a minute at most, less when what is given back lapses by itself before.
// It waits for a straggler if rest allows it.
func (l *Locker) giveBack(o pendingRelease, closing <-chan struct{}, rest func() bool) {
	most := min(max(o.TTL, Patience), time.Minute)
	end, again := time.Now().Add(most), true
	select {
	case <-closing: // before it was asked at all: this is the once more
		again = false
	default:
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallTimeout)
		err := l.driver.Release(ctx, o.Name, o.Owner)
		cancel()
		if err == nil || errors.Is(err, ErrLost) && (!o.straggler || !again) {
			return // given back, or it was never ours
		}
		pause := jitter(min(max(o.TTL/30, retryPause), givenBackEvery))
		if errors.Is(err, ErrLost) {
			if !rest() {
				return
			}
			o.straggler, pause, end = false, most/3, time.Now().Add(most)
		}
		if !again || time.Now().Add(pause).After(end) {
			l.notGivenBack(o, err)
			return
		}
		again = pauseOr(context.Background(), pause, closing)
	}
}

// givenBackEvery is how often it is asked at least, however long the ttl.
const givenBackEvery = 2 * time.Second

func (l *Locker) notGivenBack(o pendingRelease, err error) {
	if !o.told {
		l.cfg.Logger.Warn("a lock that may have been granted could not be given back; it lapses by itself",
			"name", o.Name, "within", o.TTL+o.Delay, "error", err)
	}
}

// mostReleases bounds how many releases a locker has in the background, and beside them how many that have
// been answered and wait for a straggler: those are not to keep others from asking.
const mostReleases = 1000

// releases are the background releases of a locker.
type releases struct {
	mu      sync.Mutex
	running int           // those that rest included
	resting int           // those that wait for a straggler
	idle    chan struct{} // closed when none is running, made by who waits for it
	closed  bool
	closing chan struct{}
}

// start runs f in a goroutine, or at once when all has been closed; false says
// that there are too many. f calls rest before it waits for a straggler, once; then
// too false says so.
func (b *releases) start(f func(closing <-chan struct{}, rest func() bool)) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		f(b.closing, func() bool { return true })
		return true
	}
	defer b.mu.Unlock()
	if b.running-b.resting == mostReleases {
		return false
	}
	b.running++
	go func() {
		resting := false
		f(b.closing, func() bool { resting = b.rest(); return resting })
		b.end(resting)
	}()
	return true
}

// rest counts one as resting, unless there are too many.
func (b *releases) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.resting == mostReleases {
		return false
	}
	b.resting++
	return true
}

// end counts one less.
func (b *releases) end(resting bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if resting {
		b.resting--
	}
	if b.running--; b.running == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// over reports whether all has been closed.
func (b *releases) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close has each of them ask once more, and waits for them.
func (b *releases) close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	b.mu.Unlock()
	b.wait()
}

// wait waits until none is running.
func (b *releases) wait() {
	b.mu.Lock()
	if b.running == 0 {
		b.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	<-idle
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

// pauseOr waits for d, for early or for ctx, and reports whether it was for d.
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
