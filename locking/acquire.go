package locking

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pollFirst and pollMost bound the pause between two looks at a held lock
	// for whoever does not stand in a line.
	pollFirst = 25 * time.Millisecond
	pollMost  = 500 * time.Millisecond

	// comeForward is how often whoever stands in a line asks again, called or
	// not. It keeps the place, and bounds what a lost call costs. With its jitter
	// it is half of Patience at most.
	comeForward = time.Second

	// retryPause is the pause after a call with an unknown outcome.
	retryPause = 50 * time.Millisecond
)

// Patience is how long a store keeps the place in a line, and the lock that it
// was given in its turn, of a waiter that does not ask.
const Patience = 3 * time.Second

// acquisition is one Acquire: every call it makes carries the same owner, so a
// call that is asked again after a lost reply gets the same grant.
type acquisition struct {
	locker   *Locker
	request  Request
	fixed    bool
	giveUpAt time.Time
	wait     time.Duration

	called    <-chan struct{} // the store calls; nil: it does not
	inLine    bool            // the last answer gave a place
	maybeOurs bool            // a call had an unknown outcome and no later one cleared it up
	unknowns  int             // calls with an unknown outcome: each may still be on its way
	polls     int
}

func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lock %q: not asked for: %w", a.request.Name, context.Cause(ctx))
	}
	if w := a.locker.waker; w != nil && a.wait > 0 {
		called, stop := w.Listen(a.request.Name, a.request.Owner)
		defer stop()
		a.called, a.request.Queue = called, true
	}
	for {
		lease, err := a.call(ctx)
		if err == nil {
			return lease, nil
		}
		if wait, again := a.next(err); again {
			pauseOr(ctx, wait, a.called)
			if ctx.Err() == nil {
				continue
			}
		}
		if a.maybeOurs || a.inLine || a.unknowns > 0 {
			a.locker.releaseLater(pendingRelease{Request: a.request, straggler: a.unknowns > 0})
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock %q: gave up: %w (last answer: %w)", a.request.Name, context.Cause(ctx), lastAnswer{err})
		}
		return nil, named(a.request.Name, err)
	}
}

// call asks the store once. Of its errors, only some name the lock.
func (a *acquisition) call(ctx context.Context) (*Lease, error) {
	l := a.locker
	callCtx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	g, err := l.driver.Acquire(callCtx, a.request)
	if err != nil {
		var held *HeldError
		switch {
		case unknownOutcome(err):
			a.maybeOurs = true
		case errors.As(err, &held):
			a.maybeOurs = held.Owner == a.request.Owner // else what was granted before has lapsed
			own := *held                                // the driver's may be shared; next fills in what we waited
			a.inLine = own.Place > 0
			return nil, &own
		}
		return nil, err
	}
	g.Fixed = a.fixed
	lease := l.keeper.hold(ctx, g, l)
	if !lease.Valid() {
		a.maybeOurs = true
		return nil, fmt.Errorf("%w: the answer took longer than ttl %s less the margin", ErrUnreachable, a.request.TTL)
	}
	return lease, nil
}

// next says whether to ask again after err, and after what pause.
func (a *acquisition) next(err error) (time.Duration, bool) {
	left := time.Until(a.giveUpAt)
	var held *HeldError
	if errors.As(err, &held) {
		if left <= 0 {
			held.Waited = a.wait
			return 0, false
		}
		return min(a.lookAgain(held), left), true // the last look is at the end of the wait
	}
	if !unknownOutcome(err) {
		return 0, false
	}
	// Even one who does not want to wait asks twice: the second call mostly
	// turns "unknown" into an answer.
	a.unknowns++
	return jitter(retryPause), left > 0 || a.unknowns == 1
}

// lookAgain is the pause after the answer "held". A lease that is about to lapse
// is worth looking at right then; of a line, only by its head.
func (a *acquisition) lookAgain(held *HeldError) time.Duration {
	lapse := held.Until + time.Millisecond
	if held.Until <= 0 { // nobody knows, or it never does
		lapse = pollMost
	}
	switch {
	case held.Place == 1:
		return min(jitter(comeForward), lapse)
	case held.Place > 1:
		return jitter(comeForward)
	}
	pollIn := min(pollFirst<<min(a.polls, 5), pollMost)
	a.polls++
	return min(jitter(pollIn), lapse)
}
