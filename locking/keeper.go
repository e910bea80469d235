package locking

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// gather is how long a lease that is due for renewal as it comes, because its grant was late, waits for
// others that were granted with it, to share their call.
const gather = time.Millisecond

// lookEvery is how often the keeper checks whether the machine was suspended.
const lookEvery = time.Second

// sleepNoise is what is no suspension: the two clocks that tell of one are not read at the same instant.
const sleepNoise = 10 * time.Millisecond

// KeeperConfig sets a Keeper. Its zero value is useful.
type KeeperConfig struct {
	// Margin is how long before the store may give a lease away its holder is
	// told. At least the largest step or skew of the store's clock that is
	// tolerated; at most a third of the shortest TTL. Default 1 s.
	Margin time.Duration

	// CallTimeout limits one Renew call; a sixth of the shortest TTL in the
	// batch limits it too, so that a hung call leaves time for another.
	// Default 1 s.
	CallTimeout time.Duration

	// Logger gets failed renewals (warn), lost leases (error), and fixed ones whose
	// time is over (debug). Default slog.Default().
	Logger *slog.Logger
}

func (c KeeperConfig) withDefaults() KeeperConfig {
	if c.Margin <= 0 {
		c.Margin = time.Second
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Keeper keeps leases alive: one loop renews all leases that are due in one
// call, and each lease has a timer for its local deadline. The loop's
// goroutine exists only while there is a lease to keep, and not before the first
// one is a second old or due: most locks are given back sooner. A Renew call that
// is under way when the last one ends is cancelled; Wait waits for it.
type Keeper struct {
	renewer Renewer
	cfg     KeeperConfig
	slept   func() time.Duration // Slept; tests replace it
	wake    chan struct{}        // capacity 1: look again

	// mu guards what follows and the changing fields of the leases. It is never
	// held across a call to the renewer or to a cancel function.
	mu      sync.Mutex
	leases  []*Lease           // in order of arrival, but for the gaps filled from the end
	running bool               // the loop's goroutine exists, or its start is set
	start   *time.Timer        // of the loop
	ended   chan struct{}      // closed when it ends
	abort   context.CancelFunc // of the Renew call under way, or nil
	nextDue time.Time
	asleep  time.Duration // slept at the last look
}

// NewKeeper returns a keeper that renews at r.
func NewKeeper(r Renewer, cfg KeeperConfig) *Keeper {
	return &Keeper{renewer: r, cfg: cfg.withDefaults(), slept: Slept, wake: make(chan struct{}, 1)}
}

// Hold keeps grant g alive until the lease is closed or lost. The lease's
// context is a child of parent, but the lease is not: when parent ends, whoever
// works under the lease may need a moment to stop, so it is kept until Close.
// The caller must close every lease. A grant whose deadline has passed already
// gives a lease that is lost.
func (k *Keeper) Hold(parent context.Context, g Grant) *Lease { return k.hold(parent, g, nil) }

// hold is Hold for a locker's grant, or for another's.
func (k *Keeper) hold(parent context.Context, g Grant, locker *Locker) *Lease {
	if g.Slept == 0 {
		g.Slept = k.slept()
	}
	l := &Lease{keeper: k, grant: g, locker: locker}
	if locker != nil {
		l.releasing = make(chan struct{}, 1)
	}
	l.base, l.cancel = context.WithCancelCause(parent)
	l.ctx = &leaseContext{Context: l.base, lease: l}

	k.mu.Lock()
	k.extendLocked(l, g.Asked, g.Slept)
	if soon := time.Now().Add(gather); l.due.Before(soon) {
		l.due = soon
	}
	l.index = len(k.leases)
	k.leases = append(k.leases, l)
	left := k.leftLocked(l)
	l.timer = time.AfterFunc(left, func() { k.lookAt(l) })
	k.startLocked(l)
	k.mu.Unlock()
	if left <= 0 { // it has come too late, which nobody is to hear from the timer first
		k.check(l)
	}
	return l
}

// startLocked sets the start of the loop, or has it look when l is due.
func (k *Keeper) startLocked(l *Lease) {
	wait := min(time.Until(l.due), lookEvery)
	switch {
	case !k.running:
		k.running, k.ended = true, make(chan struct{})
		k.asleep, k.nextDue = l.slept, l.due
		k.start = time.AfterFunc(wait, k.run)
	case l.due.Before(k.nextDue):
		k.nextDue = l.due
		if k.start.Stop() {
			k.start.Reset(wait)
		} else {
			k.nudge()
		}
	}
}

// stopLocked ends the loop, now that nothing is left to keep.
func (k *Keeper) stopLocked() {
	if k.start.Stop() { // it has not begun
		k.running = false
		close(k.ended)
		return
	}
	k.nudge()
}

// Wait waits until the loop has ended, after the last lease was closed or lost.
// It is for a clean end; nothing goes wrong without it.
func (k *Keeper) Wait() {
	k.mu.Lock()
	ended := k.ended
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// extendLocked sets the deadline that follows from a request sent at asked.
// Calls may be answered out of order: what an older one says is known.
func (k *Keeper) extendLocked(l *Lease, asked time.Time, slept time.Duration) {
	if asked.Before(l.asked) {
		return
	}
	ttl, due := l.grant.TTL, l.grant.TTL/3
	if first := l.grant.First; l.asked.IsZero() && first > 0 && first < ttl {
		ttl, due = first, first/5
	}
	l.asked = asked
	l.deadline = asked.Add(ttl - k.cfg.Margin - ttl/100)
	l.slept = slept
	l.due = asked.Add(due)
	if l.grant.Fixed {
		l.due = l.deadline.Add(ttl) // never: it ends before
	}
	l.failures = 0
}

// held returns the leases of a Locker that are being kept.
func (k *Keeper) held() []*Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*Lease
	for _, l := range k.leases {
		if l.locker != nil {
			out = append(out, l)
		}
	}
	return out
}

// leftLocked is the time until l's deadline, less what the machine slept since
// the deadline was set. Not positive: it has passed.
func (k *Keeper) leftLocked(l *Lease) time.Duration {
	left := time.Until(l.deadline)
	//guard:suspension-counts P4 the time that a machine was suspended has passed for the lease as well
	left -= k.slept() - l.slept
	return left
}

// lookAt is check for the deadline's timer, which is set to what is left.
func (k *Keeper) lookAt(l *Lease) {
	if !k.check(l) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.state == held {
		l.timer.Reset(k.leftLocked(l)) // not positive: at once
	}
}

// check loses l if its deadline has passed, and reports whether it is held. Where the machine
// has slept, which timers do not see, the deadline's is set to what is left.
func (k *Keeper) check(l *Lease) bool {
	k.mu.Lock()
	if l.state != held {
		k.mu.Unlock()
		return false
	}
	if left := k.leftLocked(l); left > 0 {
		if k.slept()-l.slept >= sleepNoise {
			l.timer.Reset(left)
		}
		k.mu.Unlock()
		return true
	}
	k.mu.Unlock()
	why := "not renewed before its local deadline"
	if l.grant.Fixed {
		why = "its fixed time is over"
	}
	//guard:local-deadline P4 a lease ends for its holder before anybody else may be granted it
	k.end(l, lost, why)
	return false
}

// end makes l released or lost, once; a later call changes nothing.
func (k *Keeper) end(l *Lease, to leaseState, why string) {
	k.mu.Lock()
	if l.state != held {
		k.mu.Unlock()
		return
	}
	l.state, l.cause = to, ErrReleased
	if to == lost {
		l.cause = fmt.Errorf("%w: %q, token %d: %s", ErrLeaseLost, l.grant.Name, l.grant.Token, why)
	}
	asAsked := l.grant.Fixed && !l.gone
	l.timer.Stop()
	last := len(k.leases) - 1
	k.leases[l.index] = k.leases[last]
	k.leases[l.index].index = l.index
	k.leases[last] = nil
	k.leases = k.leases[:last]
	if last == 0 {
		k.stopLocked()
	}
	abort, inner := k.abort, slices.Collect(maps.Keys(l.inner))
	k.mu.Unlock()
	if last == 0 && abort != nil {
		abort()
	}

	l.cancel(l.cause)
	for _, in := range inner {
		in.cancel(l.cause)
	}
	switch {
	case to == released:
	case asAsked:
		k.cfg.Logger.Debug("fixed lease is over", "name", l.grant.Name, "token", l.grant.Token)
	default:
		k.cfg.Logger.Error("lease lost", "name", l.grant.Name, "token", l.grant.Token, "reason", why)
	}
}

// nudge makes the loop look again soon. It never blocks.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}
