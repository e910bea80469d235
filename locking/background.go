package locking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxBackground bounds how many background releases of a Locker call the store at once, and how
	// many more wait for a late acquire.
	maxBackground = 1000

	// repeatReleaseEvery is the longest pause between two attempts, whatever the TTL is.
	repeatReleaseEvery = 2 * time.Second
)

// pendingRelease is a lock that may still be held, or a place in a queue, to be released in the
// background.
type pendingRelease struct {
	Request
	driver Driver // the driver that got the request to acquire

	// lateAcquire: a request to acquire may still be under way and take the lock after the release,
	// for an owner that has given up. A second release is then sent, a third of the TTL later.
	lateAcquire bool
	reported    bool // the caller got an error with this fact: nothing is logged
}

// releaseLater releases p in the background. On a closed locker, releaseLater sends one release
// before it returns, or none where Release has sent one already (p.reported).
func (l *Locker) releaseLater(p pendingRelease) {
	if p.reported && l.background.isClosed() {
		return
	}
	if !l.background.start(func(keepWaiting func() bool) { l.repeatRelease(p, keepWaiting) }) {
		l.logNotReleased(p, fmt.Errorf("%d other releases are under way", maxBackground))
	}
}

// repeatRelease repeats the release until the store has answered: for the TTL, at least
// QueueTimeout and at most a minute. The second release, for a late acquire, is sent only if
// keepWaiting returns true.
func (l *Locker) repeatRelease(p pendingRelease, keepWaiting func() bool) {
	limit := min(max(p.TTL, QueueTimeout), time.Minute)
	end, again := time.Now().Add(limit), !l.background.isClosed()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallTimeout)
		err := p.driver.Release(ctx, p.Name, p.Owner)
		cancel()
		if err == nil || errors.Is(err, ErrLost) && (!p.lateAcquire || !again) {
			return
		}
		wait := jitter(min(max(p.TTL/30, retryPause), repeatReleaseEvery))
		if errors.Is(err, ErrLost) {
			if !keepWaiting() {
				return
			}
			p.lateAcquire, wait, end = false, limit/3, time.Now().Add(limit)
		}
		if !again || time.Now().Add(wait).After(end) {
			l.logNotReleased(p, err)
			return
		}
		again = pauseOr(context.Background(), wait, l.background.closing)
	}
}

func (l *Locker) logNotReleased(p pendingRelease, err error) {
	if !p.reported {
		l.cfg.Logger.Warn("a lock that may have been granted could not be released; it lapses by itself",
			"name", p.Name, "within", p.TTL+p.Delay, "error", err)
	}
}

// background runs the releases that go on after the call that began them has returned.
type background struct {
	asking  chan struct{} // one value for each release that calls the store
	waiting chan struct{} // one value for each release that was answered and waits for a late acquire
	closing chan struct{} // closed by close
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

func newBackground() *background {
	return &background{
		asking:  make(chan struct{}, maxBackground),
		waiting: make(chan struct{}, maxBackground),
		closing: make(chan struct{}),
	}
}

// start runs f in a goroutine, or in this one when the background is closed. False: too many are
// running. f calls keepWaiting, once, before it waits for a late acquire; false: too many wait.
func (b *background) start(f func(keepWaiting func() bool)) bool {
	b.mu.Lock()
	closed := b.closed
	started := !closed && enter(b.asking)
	if started {
		b.running.Go(func() { b.run(f) })
	}
	b.mu.Unlock()
	if closed {
		f(func() bool { return false })
	}
	return closed || started
}

// run calls f in a slot of asking, which it exchanges for one of waiting.
func (b *background) run(f func(keepWaiting func() bool)) {
	slots := b.asking
	f(func() bool {
		if !enter(b.waiting) {
			return false
		}
		<-slots
		slots = b.waiting
		return true
	})
	<-slots
}

// enter takes one of the slots, if one is free.
func enter(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (b *background) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close lets each release send one more request, and waits for all of them.
func (b *background) close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	b.mu.Unlock()
	b.running.Wait()
}
