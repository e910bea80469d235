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

// batchWait is how long a late grant, which is due for renewal at once, waits for further late
// grants to share its call.
const batchWait = time.Millisecond

// checkEvery is how often the keeper checks whether the machine was suspended.
const checkEvery = time.Second

// suspendNoise is the difference of the two clocks that counts as none: they are not read at one instant.
const suspendNoise = 10 * time.Millisecond

// KeeperConfig holds the settings of a Keeper. The zero value is useful.
type KeeperConfig struct {
	// Margin is how long before the end of the lease at the store its context ends. At least the largest
	// step or skew of the store's clock to be tolerated; at most a third of the shortest TTL. Default 1 s.
	Margin time.Duration

	// CallTimeout limits one Renew call. A sixth of the shortest TTL limits it too, so that a hung call
	// leaves time for another. Default 1 s.
	CallTimeout time.Duration

	// Logger gets failed renewals (warn), lost leases (error), and fixed leases that are over (debug).
	// Default slog.Default().
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

// Keeper renews leases: one loop renews all leases that are due, in one call, and each lease has a timer for
// its local deadline.
//
// The loop's goroutine exists while there are leases, and begins when the first is a second old or due,
// because most locks are released sooner. When the last lease ends, a Renew call under way is cancelled.
type Keeper struct {
	renewer Renewer
	cfg     KeeperConfig
	slept   func() time.Duration // Slept; tests replace it
	wake    chan struct{}        // capacity 1: plan again

	// mu guards the fields below and the changing fields of the leases. It is never held across a
	// call to the renewer or to a cancel function.
	mu        sync.Mutex
	leases    []*Lease           // in no order
	running   bool               // the loop's goroutine exists, or its start is set
	start     *time.Timer        // of the loop
	abort     context.CancelFunc // of the Renew call under way, or nil
	nextDue   time.Time
	lastSlept time.Duration // slept at the last look
}

// NewKeeper returns a keeper that renews at r.
func NewKeeper(r Renewer, cfg KeeperConfig) *Keeper {
	return &Keeper{renewer: r, cfg: cfg.withDefaults(), slept: Slept, wake: make(chan struct{}, 1)}
}

// Hold renews grant g until the lease is closed or lost. The caller closes every lease. The lease's context
// is a child of parent. When parent ends, the lease is still renewed until Close, so that the work under it
// can end. The lease is lost when the grant's deadline has passed already.
func (k *Keeper) Hold(parent context.Context, g Grant) *Lease { return k.hold(parent, g, nil) }

// hold is Hold; a is nil unless the grant is a Locker's.
func (k *Keeper) hold(parent context.Context, g Grant, a *acquisition) *Lease {
	if g.Slept == 0 {
		g.Slept = k.slept()
	}
	l := &Lease{keeper: k, grant: g}
	if a != nil {
		l.locker, l.driver, l.share, l.releasing = a.locker, a.driver, a.share, make(chan struct{}, 1)
	}
	l.base, l.cancel = context.WithCancelCause(parent)
	l.ctx = &leaseContext{Context: l.base, lease: l}

	k.mu.Lock()
	k.extendLocked(l, g.Asked, g.Slept)
	if soon := time.Now().Add(batchWait); l.due.Before(soon) {
		l.due = soon
	}
	l.index = len(k.leases)
	k.leases = append(k.leases, l)
	left := k.leftLocked(l)
	l.timer = time.AfterFunc(left, func() { k.onDeadline(l) })
	k.startLocked(l)
	k.mu.Unlock()
	if left <= 0 { // lost before Hold returns, and not when the timer runs
		k.check(l)
	}
	return l
}

// startLocked sets the start of the loop, or the time of its next plan, for l.
func (k *Keeper) startLocked(l *Lease) {
	wait := min(time.Until(l.due), checkEvery)
	switch {
	case !k.running:
		k.running = true
		k.lastSlept, k.nextDue = l.slept, l.due
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

// stopLocked ends the loop after the last lease.
func (k *Keeper) stopLocked() {
	if k.start.Stop() { // the loop has not begun
		k.running = false
		return
	}
	k.nudge()
}

// extendLocked sets the deadline that follows from a request sent at the time asked. Answers may
// arrive out of order: the answer to an older request changes nothing.
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

// held returns the leases of a Locker that have not ended.
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

// leftLocked returns the time until l's deadline, less the time that the machine was suspended since the
// deadline was set. Not positive: the deadline has passed.
func (k *Keeper) leftLocked(l *Lease) time.Duration {
	left := time.Until(l.deadline)
	//guard:suspension-counts P4 the time that a machine was suspended has passed for the lease as well
	left -= k.slept() - l.slept
	return left
}

// onDeadline checks l when its timer ends. Where time is left, the timer is set again.
func (k *Keeper) onDeadline(l *Lease) {
	if !k.check(l) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.state == held {
		l.timer.Reset(k.leftLocked(l))
	}
}

// check ends l if its deadline has passed, and reports whether it is held. After a suspension, which timers
// do not count, it sets the timer again.
func (k *Keeper) check(l *Lease) bool {
	k.mu.Lock()
	if l.state != held {
		k.mu.Unlock()
		return false
	}
	if left := k.leftLocked(l); left > 0 {
		if k.slept()-l.slept >= suspendNoise {
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
	fixedIsOver := l.grant.Fixed && !l.gone
	l.timer.Stop()
	last := len(k.leases) - 1
	k.leases[l.index] = k.leases[last]
	k.leases[l.index].index = l.index
	k.leases[last] = nil
	k.leases = k.leases[:last]
	if last == 0 {
		k.stopLocked()
	}
	abort, inner := k.abort, slices.Collect(maps.Keys(l.reentered))
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
	case fixedIsOver:
		k.cfg.Logger.Debug("fixed lease is over", "name", l.grant.Name, "token", l.grant.Token)
	default:
		k.cfg.Logger.Error("lease lost", "name", l.grant.Name, "token", l.grant.Token, "reason", why)
	}
}

// nudge makes the loop plan again. It never blocks.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}
