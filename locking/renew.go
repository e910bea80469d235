package locking

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minRetry is the shortest pause before a failed renewal is tried again.
const minRetry = 50 * time.Millisecond

// plan is what the loop does next: renew the batch, or wait.
type plan struct {
	batch   []*Lease
	timeout time.Duration // for the renewal of batch
	wait    time.Duration // when batch is empty
}

// run is the keeper's loop. It ends when there is nothing left to keep.
func (k *Keeper) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, more := k.look()
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

// look decides what to do next; false means that the loop is to end.
func (k *Keeper) look() (plan, bool) {
	k.mu.Lock()
	if len(k.leases) == 0 {
		k.running = false
		close(k.ended)
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
		// Of all leases, not only those in the batch: the next to be due waits
		// for this call to end.
		if !l.grant.Fixed {
			p.timeout = min(p.timeout, l.grant.TTL/6)
		}
	}
	p.wait = min(k.nextDue.Sub(now), lookEvery)
	if p.wait <= 0 {
		p.batch = k.dueLocked(now)
	}
	suspects := k.suspectsLocked()
	k.mu.Unlock()

	for _, l := range suspects {
		k.check(l)
	}
	return p, true
}

// dueLocked returns the leases to be renewed at now.
func (k *Keeper) dueLocked(now time.Time) []*Lease {
	var batch []*Lease
	for _, l := range k.leases {
		if !l.grant.Fixed && !l.due.After(now.Add(l.slack())) {
			batch = append(batch, l)
		}
	}
	return batch
}

// slack is how much before it is due a lease joins the renewal of another, so
// that leases taken at different moments come to share one call. One whose
// renewal failed keeps its own pace.
func (l *Lease) slack() time.Duration {
	if l.failures > 0 {
		return 0
	}
	return l.grant.TTL / 6
}

func (g Grant) renewal() Renewal {
	return Renewal{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL, Delay: g.Delay}
}

// suspectsLocked returns all leases if the machine was suspended since the
// last look: their timers are late by that time.
func (k *Keeper) suspectsLocked() []*Lease {
	asleep := k.slept()
	if asleep-k.asleep < sleepNoise {
		return nil
	}
	k.asleep = asleep
	return append([]*Lease(nil), k.leases...)
}

// renew asks once for the whole batch.
func (k *Keeper) renew(p plan) {
	batch := p.batch
	renewals := make([]Renewal, len(batch))
	for i, l := range batch {
		renewals[i] = l.grant.renewal()
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	k.setAbort(cancel)
	if p.timeout > lookEvery {
		go k.lookMeanwhile(ctx) // the loop cannot
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

// lookMeanwhile looks for a suspension of the machine until ctx, of the call under way, ends.
func (k *Keeper) lookMeanwhile(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.mu.Lock()
		suspects := k.suspectsLocked()
		k.mu.Unlock()
		for _, l := range suspects {
			k.check(l)
		}
	}
}

// extend renews l now, beside the loop.
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

// apply takes the answers to a batch sent at sent.
func (k *Keeper) apply(batch []*Lease, answers []RenewAnswer, sent time.Time, slept time.Duration, err error) {
	now := time.Now()
	var gone, revoked, late []*Lease
	var unknown int
	var left time.Duration // until the first deadline among the unknown
	k.mu.Lock()
	for i, l := range batch {
		switch {
		case l.state != held: // ended while the call was under way; that is final
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
	for _, l := range revoked { // it is there still: its holder gives it back, or it lapses
		k.end(l, lost, "somebody has asked this holder to end")
	}
	for _, l := range late { // the answer came after the deadline
		k.check(l)
	}
	if unknown > 0 {
		k.cfg.Logger.Warn("renewal unanswered, trying again until the local deadline",
			"leases", unknown, "first_deadline_in", left, "error", err)
	}
}
