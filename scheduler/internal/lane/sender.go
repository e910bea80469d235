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

// sender carries batches of claims to a lane's master and their answers back. A lane has a few, with one request in flight each.
type sender struct {
	l        *Lane
	terms    *Terms
	detached bool // it carries one batch, whatever lane its partition comes to
}

// run serves the agenda until the lane ends, which takes no more batches then.
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

// carry brings one batch's answers, and has what was granted begin. A batch that has to wait for a failover of its partition has a goroutine of
// its own from then on: the lane's senders are for the others.
func (s sender) carry(b *work.Batch) {
	if !s.claim(s.terms.Claiming, b) {
		s.detached = true
		s.terms.Group.Go(func() { s.carry(b) })
		return
	}
	if b.Err == nil {
		s.l.failover.answered(b)
	}
	s.start(b)
	s.l.lanes.cursors.came(b)
	s.l.Answers <- b
}

// claim asks until there is an answer. A copy of a request can be granted until MaxSkew after it
// was sent (then the clock check refuses it), and ticks become old while Redis is away. So copies
// that can be granted are sent for MaxSkew only; from then on the batch asks whether it was
// granted, and a no is final when no copy can be under way any more. When draining ends, a claim whose outcome is unknown is given
// up after a while. An error that is not Redis
// being away is the batch's own: it goes back to the agenda, so that it keeps no other waiting.
// False: it is to go on detached.
func (s sender) claim(draining context.Context, b *work.Batch) (done bool) {
	skew := s.l.MaxSkew
	var doubt doubt
	defer doubt.end()
	for try := 0; ; try++ {
		if s.detached {
			s.l = s.l.lanes.of(b.Part)
		}
		l := s.l
		if b.FirstSent.IsZero() && (draining.Err() != nil || time.Since(b.Created) > 2*skew || l.apart && l.shut(b.Part)) {
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
			s.unconfirmed(b)
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
		held := anew || l.failover.holds(b.Part) // or it has another lane
		if l.apart && b.Err != nil {
			s.free(b)
			if held {
				doubt.end()
			} else {
				doubt.begin(l.breaker)
				s.flush()
			}
		}
		b.Repeated = true
		wait.For(context.Background(), wait.Backoff(l.ID+b.Claims[0].Run, max(0, try)))
		if l.apart && held && !s.detached && !b.FirstSent.IsZero() {
			return false
		}
	}
}

// failed takes up the error of a batch: whether it is to be asked for again, and anew, because its master is not the one that it was.
func (s sender) failed(b *work.Batch) (again, anew bool) {
	switch {
	case b.Err == nil:
		return false, false
	case errors.Is(b.Err, errHolding), errors.Is(b.Err, ledger.ErrServer):
		if errors.Is(b.Err, ledger.ErrServer) {
			s.l.failover.doubt()
		}
		if !b.Unanswered {
			b.FirstSent = time.Time{} // nothing was carried out
		}
		return true, true
	case s.l.apart && redisconn.OfSlot(b.Err): // its partition moves, which says nothing of others
		wait.Signal(s.l.lanes.changed)
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

// free gives back the slots of a batch that is in doubt: what its claims are granted takes them again.
func (s sender) free(b *work.Batch) {
	if !b.SlotsFreed {
		b.SlotsFreed = true
		s.l.Inbox.Send(agenda.SlotsFreed{Slots: len(b.Claims)})
	}
}

// flush gives what waits behind a batch that is in doubt, and was not sent, back to the agenda.
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

// unconfirmed tells of grants that too few replicas have.
func (s sender) unconfirmed(b *work.Batch) {
	for _, a := range b.Answers {
		if a.Unconfirmed != nil {
			s.l.breaker.unsure(a.Unconfirmed)
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
	server, may := l.failover.claims(b.Part)
	if !may {
		return nil, errHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	by := ledger.Claimer{ID: l.ID, Name: l.Name}
	b.Server = server
	answers, err := l.Ledger.At(server).Claim(ctx, by, l.Clock.Now().UnixMilli(), b.Claims)
	return answers, l.breaker.full(err)
}
