package locking

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pollFirst and pollMost bound the pause between two requests of a waiter without a place in a queue.
	pollFirst = 25 * time.Millisecond
	pollMost  = 500 * time.Millisecond

	// queuedPollEvery is the mean time between two requests of a queued waiter that gets no
	// notification. Each request keeps the waiter's place, and bounds the cost of a lost
	// notification. With jitter the pause is at most half of QueueTimeout.
	queuedPollEvery = time.Second

	// retryPause is the pause after a call with an unknown outcome.
	retryPause = 50 * time.Millisecond
)

// QueueTimeout is how long a store keeps the place of a queued waiter, or the lock that was granted
// to the waiter, without a further request of the waiter.
const QueueTimeout = 3 * time.Second

// acquisition is one Acquire. All its calls carry the same owner, so a call that is repeated after a lost
// reply gets the same grant.
type acquisition struct {
	locker   *Locker
	driver   Driver  // of the locker, or of the share
	keeper   *Keeper // of the locker's locks, or shares
	share    Share
	request  Request
	fixed    bool
	giveUpAt time.Time
	wait     time.Duration

	notified     <-chan struct{} // nil without a Notifier
	queued       bool            // the last answer gave a place in the queue
	maybeGranted bool            // a call had an unknown outcome, and no later answer excludes a grant
	unknowns     int             // calls with an unknown outcome: each may still reach the store
	polls        int
}

func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lock %q: not asked for: %w", a.request.Name, context.Cause(ctx))
	}
	if w := a.locker.notifier; w != nil && a.wait > 0 {
		called, stop := w.Listen(a.request.Name, a.request.Owner)
		defer stop()
		a.notified, a.request.Queue = called, true
	}
	for {
		lease, err := a.call(ctx)
		if err == nil {
			return lease, nil
		}
		if wait, again := a.next(err); again {
			pauseOr(ctx, wait, a.notified)
			if ctx.Err() == nil {
				continue
			}
		}
		if a.maybeGranted || a.queued || a.unknowns > 0 {
			a.locker.releaseLater(pendingRelease{Request: a.request, driver: a.driver, lateAcquire: a.unknowns > 0})
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock %q: gave up: %w (last answer: %w)", a.request.Name, context.Cause(ctx), lastAnswer{err})
		}
		return nil, named(a.request.Name, err)
	}
}

// call sends one request to acquire. Not all of its errors name the lock.
func (a *acquisition) call(ctx context.Context) (*Lease, error) {
	callCtx, cancel := context.WithTimeout(ctx, a.locker.cfg.CallTimeout)
	defer cancel()
	g, err := a.driver.Acquire(callCtx, a.request)
	if err != nil {
		var held *HeldError
		switch {
		case unknownOutcome(err):
			a.maybeGranted = true
		case errors.As(err, &held):
			a.maybeGranted = held.Owner == a.request.Owner // else an earlier grant has lapsed
			own := *held                                   // the driver may share its value, and next sets Waited
			a.queued = own.Place > 0
			return nil, &own
		}
		return nil, err
	}
	g.Fixed = a.fixed
	lease := a.keeper.hold(ctx, g, a)
	if !lease.Valid() {
		a.maybeGranted = true
		return nil, fmt.Errorf("%w: its answer came after the lease's deadline (ttl %s less the margin)", ErrUnreachable, a.request.TTL)
	}
	return lease, nil
}

// next reports whether to send another request after err, and after which pause.
func (a *acquisition) next(err error) (time.Duration, bool) {
	left := time.Until(a.giveUpAt)
	var held *HeldError
	if errors.As(err, &held) {
		if left <= 0 {
			held.Waited = a.wait
			return 0, false
		}
		return min(a.nextPoll(held), left), true // the last request is at the end of the wait
	}
	if !unknownOutcome(err) {
		return 0, false
	}
	// Without Wait too, a call without an answer is repeated: the second one mostly gets an answer.
	a.unknowns++
	return jitter(retryPause), left > 0 || a.unknowns == 1
}

// nextPoll returns the pause after the answer "held". The first waiter in the queue, and a waiter
// without a place, send their next request when the holder's lease lapses at the latest.
func (a *acquisition) nextPoll(held *HeldError) time.Duration {
	lapse := held.Until + time.Millisecond
	if held.Until <= 0 { // not known
		lapse = pollMost
	}
	switch {
	case held.Place == 1:
		return min(jitter(queuedPollEvery), lapse)
	case held.Place > 1:
		return jitter(queuedPollEvery)
	}
	pollIn := min(pollFirst<<min(a.polls, 5), pollMost)
	a.polls++
	return min(jitter(pollIn), lapse)
}
