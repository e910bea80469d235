package locking

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pollFirst and pollMost bound the pause between two looks at a held lock.
	pollFirst = 25 * time.Millisecond
	pollMost  = 500 * time.Millisecond

	// retryPause is the pause after a call with an unknown outcome.
	retryPause = 50 * time.Millisecond

	// releaseTries is how often a release is asked before the caller is told
	// that its outcome is unknown.
	releaseTries = 3
)

// acquisition is one Acquire: every call it makes carries the same owner, so a
// call that is asked again after a lost reply gets the same grant.
type acquisition struct {
	locker   *Locker
	name     string
	owner    string
	ttl      time.Duration
	giveUpAt time.Time
	wait     time.Duration

	maybeOurs bool // a call had an unknown outcome and no later one cleared it up
	unknowns  int
	polls     int
}

func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lock %q: not asked for: %w", a.name, context.Cause(ctx))
	}
	for {
		lease, err := a.call(ctx)
		if err == nil {
			return lease, nil
		}
		wait, again := a.next(err)
		if again && pause(ctx, wait) {
			continue
		}
		if a.maybeOurs {
			a.locker.releaseLater(a.name, a.owner, a.ttl)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock %q: gave up: %w (last answer: %w)", a.name, context.Cause(ctx), err)
		}
		return nil, err
	}
}

// call asks the store once.
func (a *acquisition) call(ctx context.Context) (*Lease, error) {
	l := a.locker
	callCtx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	g, err := l.driver.Acquire(callCtx, a.name, a.owner, a.ttl)
	if err != nil {
		var held *HeldError
		switch {
		case unknownOutcome(err):
			a.maybeOurs = true
		case errors.As(err, &held):
			a.maybeOurs = false // whatever was granted before has lapsed
			own := *held        // the driver's may be shared; next fills in what we waited
			return nil, &own
		}
		return nil, fmt.Errorf("lock %q: %w", a.name, err)
	}
	lease := l.keeper.Hold(ctx, g)
	lease.giveBack = func(ctx context.Context, closedValid bool) error {
		return l.release(ctx, a.name, a.owner, closedValid)
	}
	if !lease.Valid() {
		a.maybeOurs = true
		return nil, fmt.Errorf("lock %q: %w: the answer took longer than ttl %s less the margin", a.name, ErrUnreachable, a.ttl)
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
		pollIn := min(pollFirst<<min(a.polls, 5), pollMost)
		a.polls++
		// A lease that is about to lapse is worth looking at right then; and the
		// last look is at the end of the wait.
		return min(jitter(pollIn), held.Until+time.Millisecond, left), true
	}
	if !unknownOutcome(err) {
		return 0, false
	}
	// Even one who does not want to wait asks twice: the second call mostly
	// turns "unknown" into an answer.
	a.unknowns++
	return jitter(retryPause), left > 0 || a.unknowns == 1
}
