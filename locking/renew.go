package locking

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minRetry is the shortest pause before a failed renewal is tried again.
const minRetry = 50 * time.Millisecond

// plan is the loop's next step: renew the batch, or wait.
type plan struct {
	batch   []*Lease
	timeout time.Duration // for the renewal of batch
	wait    time.Duration // when batch is empty
}

// run is the keeper's loop. It ends after the last lease.
func (k *Keeper) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, more := k.next()
		if !more {
			return
		}
		if len(p.batch) > 0 {
			k.renew(p)
			continue
		}
		timer.Reset(p.wait)
		select {
		case <-timer.C:
		case <-k.wake:
		}
	}
}

// next returns the loop's next step. False: there are no leases, and the loop ends.
func (k *Keeper) next() (plan, bool) {
	k.mu.Lock()
	if len(k.leases) == 0 {
		k.running = false
		k.mu.Unlock()
		return plan{}, false
	}
	now := time.Now()
	p := plan{timeout: k.cfg.CallTimeout}
	k.nextDue = k.leases[0].due
	for _, l := range k.leases {
		if l.due.Before(k.nextDue) {
			k.nextDue = l.due
		}
		// All leases count, not only those in the batch: the next one to be due waits for this call.
		if !l.grant.Fixed {
			p.timeout = min(p.timeout, l.grant.TTL/6)
		}
	}
	p.wait = min(k.nextDue.Sub(now), checkEvery)
	if p.wait <= 0 {
		p.batch = k.dueLocked(now)
	}
	suspects := k.suspendedLocked()
	k.mu.Unlock()

	for _, l := range suspects {
		k.check(l)
	}
	return p, true
}

// dueLocked returns the leases to renew at now.
func (k *Keeper) dueLocked(now time.Time) []*Lease {
	var batch []*Lease
	for _, l := range k.leases {
		if !l.grant.Fixed && !l.due.After(now.Add(l.slack())) {
			batch = append(batch, l)
		}
	}
	return batch
}

// slack returns how long before it is due a lease may be renewed with another, so that leases of different
// age share one call. A failed renewal is not shared.
func (l *Lease) slack() time.Duration {
	if l.failures > 0 {
		return 0
	}
	return l.grant.TTL / 6
}

func (g Grant) renewal() Renewal {
	return Renewal{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL, Delay: g.Delay}
}

// suspendedLocked returns all leases if the machine was suspended since the last call: their timers are late.
func (k *Keeper) suspendedLocked() []*Lease {
	asleep := k.slept()
	if asleep-k.lastSlept < suspendNoise {
		return nil
	}
	k.lastSlept = asleep
	return append([]*Lease(nil), k.leases...)
}

// renew sends one request for the whole batch.
func (k *Keeper) renew(p plan) {
	batch := p.batch
	renewals := make([]Renewal, len(batch))
	for i, l := range batch {
		renewals[i] = l.grant.renewal()
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	k.setAbort(cancel)
	if p.timeout > checkEvery {
		go k.watchSuspension(ctx)
	}
	sent, slept := time.Now(), k.slept()
	answers, err := k.renewer.Renew(ctx, renewals)
	k.setAbort(nil)
	if len(answers) != len(batch) {
		if err == nil {
			err = fmt.Errorf("renew: %d answers to %d renewals; the Renewer must answer each, in order", len(answers), len(batch))
		}
		answers = make([]RenewAnswer, len(batch)) // all Unknown
	}
	k.apply(batch, answers, sent, slept, err)
}

// watchSuspension checks for a suspension of the machine while a call is under way, until ctx ends.
func (k *Keeper) watchSuspension(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.mu.Lock()
		suspects := k.suspendedLocked()
		k.mu.Unlock()
		for _, l := range suspects {
			k.check(l)
		}
	}
}

// extend renews l now, outside of the loop.
func (k *Keeper) extend(ctx context.Context, l *Lease) error {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.CallTimeout)
	defer cancel()
	sent, slept := time.Now(), k.slept()
	answers, err := k.renewer.Renew(ctx, []Renewal{l.grant.renewal()})
	switch {
	case err != nil && unknownOutcome(err) && !errors.Is(err, ErrUnreachable):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil:
		return err
	case len(answers) != 1 || answers[0] == Unknown:
		return fmt.Errorf("%w: no answer", ErrUnreachable)
	}
	k.apply([]*Lease{l}, answers, sent, slept, nil)
	if answers[0] == Gone || answers[0] == Revoked || !k.check(l) {
		return ErrLost
	}
	return nil
}

func (k *Keeper) setAbort(f context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.abort = f
}

// apply applies the answers to a batch that was sent at sent.
func (k *Keeper) apply(batch []*Lease, answers []RenewAnswer, sent time.Time, slept time.Duration, err error) {
	now := time.Now()
	var gone, revoked, late []*Lease
	var unknown int
	var left time.Duration // until the first deadline among the unknown
	k.mu.Lock()
	for i, l := range batch {
		switch {
		case l.state != held: // ended meanwhile, which is final
		case answers[i] == Renewed && k.leftLocked(l) > 0:
			at := now
			//guard:renewed-from-request P4 the lease goes on from before the request was sent, not from its answer
			if sent.Before(at) {
				at = sent
			}
			k.extendLocked(l, at, slept)
			l.timer.Reset(k.leftLocked(l))
		case answers[i] == Renewed:
			late = append(late, l)
		case answers[i] == Gone:
			l.gone = true
			gone = append(gone, l)
		case answers[i] == Revoked:
			l.gone = true
			revoked = append(revoked, l)
		default:
			if d := l.deadline.Sub(now); unknown == 0 || d < left {
				left = d
			}
			unknown++
			l.failures++
			l.due = now.Add(max(l.grant.TTL/15, minRetry))
		}
	}
	k.mu.Unlock()

	for _, l := range gone {
		k.end(l, lost, "the store says that it is gone")
	}
	for _, l := range revoked {
		k.end(l, lost, "somebody has asked this holder to end")
	}
	for _, l := range late { // answered after the deadline
		k.check(l)
	}
	if unknown > 0 {
		k.cfg.Logger.Warn("renewal unanswered, trying again until the local deadline",
			"leases", unknown, "first_deadline_in", left, "error", err)
	}
}
