package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sender carries batches of claims to a lane's master and brings back the answers. A lane has a
// few, with one request in flight each.
type sender struct {
	l        *Lane
	terms    *Terms
	detached bool // it carries one batch, even when its partition gets another lane
}

// run carries batches until the lane ends.
func (s sender) run(over <-chan struct{}) {
	for {
		select {
		case b := <-s.l.claims:
			s.carry(b)
		case <-over:
			s.flush()
			return
		}
	}
}

// carry gets one batch's answers and starts the granted runs. A batch that has to wait for a
// failover of its partition gets its own goroutine, so that the lane's senders serve the others.
func (s sender) carry(b *work.Batch) {
	if !s.claim(s.terms.Claiming, b) {
		s.detached = true
		s.terms.Group.Go(func() { s.carry(b) })
		return
	}
	if b.Err == nil {
		s.l.epochs.answered(b)
	}
	s.start(b)
	s.l.lanes.cursors.came(b)
	s.l.Answers <- b
}

// claim sends a batch until it is answered. A copy of a request can be granted until MaxSkew after
// it was sent; later the clock check refuses it. Ticks also become old while Redis is unreachable.
// So copies that can be granted are sent for MaxSkew only. After that the batch only asks whether
// it was granted, and a no is final when no copy can be under way any more.
//
// When the drain ends, a claim without an answer is given up after a while. An error other than an
// unreachable Redis goes back to the agenda, so that the batch keeps no other waiting. done is
// false when the batch is to go on detached.
func (s sender) claim(draining context.Context, b *work.Batch) (done bool) {
	skew := s.l.MaxSkew
	var doubt inDoubt
	defer doubt.end()
	for try := 0; ; try++ {
		if s.detached {
			s.l = s.l.lanes.of(b.Part)
		}
		l := s.l
		if b.FirstSent.IsZero() && (draining.Err() != nil || time.Since(b.Created) > 2*skew || l.clustered && l.blocked(b.Part)) {
			b.Err = work.ErrNotSent
			return true
		}
		if b.FirstSent.IsZero() {
			b.FirstSent, b.Suspended = time.Now(), locking.Slept()
			l.lanes.cursors.asking(b)
		}
		asking := time.Since(b.FirstSent) > skew
		if asking {
			b.AskOnly(l.Clock.Now().UnixMilli())
		} else {
			b.LastGrantable = time.Now()
		}
		b.LastSent = time.Now()
		b.Answers, b.Err = s.once(b)
		again, anew := s.failed(b)
		switch {
		case b.Err == nil:
			l.breaker.ok(roleClaim)
			s.reportUnconfirmed(b)
			if !asking || time.Since(b.LastGrantable) > 2*skew || !b.Inconclusive() {
				return true
			}
		case !again:
			return true
		case anew:
			try = -1
		}
		if draining.Err() != nil && !b.FirstSent.IsZero() && time.Since(b.FirstSent) > 3*skew {
			return true
		}
		held := anew || l.epochs.holds(b.Part) // or it has another lane
		if l.clustered && b.Err != nil {
			s.freeSlots(b)
			if held {
				doubt.end()
			} else {
				doubt.begin(l.breaker)
				s.flush()
			}
		}
		b.Repeated = true
		wait.For(context.Background(), wait.Backoff(l.ID+b.Claims[0].Run, max(0, try)))
		if l.clustered && held && !s.detached && !b.FirstSent.IsZero() {
			return false
		}
	}
}

// failed handles a batch's error. again: the batch is to be sent again. anew: its master is another
// one now.
func (s sender) failed(b *work.Batch) (again, anew bool) {
	switch {
	case b.Err == nil:
		return false, false
	case errors.Is(b.Err, errHolding), errors.Is(b.Err, ledger.ErrServer):
		if errors.Is(b.Err, ledger.ErrServer) {
			s.l.epochs.recheck()
		}
		if !b.Unanswered {
			b.FirstSent = time.Time{} // nothing was carried out
		}
		return true, true
	case s.l.clustered && redisconn.OfSlot(b.Err): // its partition moves; others are not affected
		wait.Signal(s.l.lanes.routesChanged)
		return b.Unanswered, b.Unanswered
	case errors.Is(b.Err, ledger.ErrClock):
		s.l.Health.Fail(roleClaim, b.Err)
		s.l.lanes.Resample(context.Background())
	case errors.Is(b.Err, locking.ErrUnreachable):
		b.Unanswered = true
		s.l.fail(roleClaim, b.Err)
	default:
		s.l.Health.Fail(roleClaim, b.Err)
		return false, false
	}
	return true, false
}

// freeSlots releases the slots of a batch in doubt. The runs that it is granted take slots again.
func (s sender) freeSlots(b *work.Batch) {
	if !b.SlotsFreed {
		b.SlotsFreed = true
		s.l.Inbox.Send(agenda.SlotsFreed{Slots: len(b.Claims)})
	}
}

// flush returns batches to the agenda that wait behind a batch in doubt and were not sent.
func (s sender) flush() {
	for {
		select {
		case next := <-s.l.claims:
			next.Err = work.ErrNotSent
			s.l.Answers <- next
		default:
			return
		}
	}
}

// reportUnconfirmed notes grants that too few replicas have confirmed.
func (s sender) reportUnconfirmed(b *work.Batch) {
	for _, a := range b.Answers {
		if a.Unconfirmed != nil {
			s.l.breaker.setConfirmed(a.Unconfirmed)
			return
		}
	}
}

// CallTimeout bounds one call to Redis.
const CallTimeout = time.Second

func (s sender) once(b *work.Batch) ([]ledger.Answer, error) {
	l := s.l
	if err := l.Clock.Usable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrClock, err)
	}
	epoch, may := l.epochs.claims(b.Part)
	if !may {
		return nil, errHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	by := ledger.Claimer{ID: l.ID, Name: l.Name}
	b.Epoch = epoch
	answers, err := l.Ledger.At(epoch).Claim(ctx, by, l.Clock.Now().UnixMilli(), b.Claims)
	return answers, l.breaker.full(err)
}
