package lane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sender carries batches of claims to Redis and their answers back. A node has a few, with one
// request in flight each, and on a Cluster as many besides as are answered late, each of which has slots.
type sender struct {
	n      *Lane
	aside  *sync.WaitGroup // of the batches that keep no sender
	runner Runner
}

// run serves the agenda until it closes the channel of batches. When draining ends, claims
// whose outcome is still unknown are given up. On a Cluster no batch keeps the sender for long, for one at a slow master is
// not to keep those of others waiting.
func (s sender) run(draining context.Context) {
	for b := range s.n.Claims {
		if s.n.quiet.apart {
			briefly(s.aside, func() { s.carry(draining, b) })
		} else {
			s.carry(draining, b)
		}
	}
}

// unhurried is how long a sender or carrier of a Cluster waits for one batch before it takes the next.
const unhurried = 20 * time.Millisecond

// briefly does something in a goroutine of a group, and waits for it for a little while.
func briefly(group *sync.WaitGroup, do func()) {
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		do()
	})
	wait.Within(done, unhurried)
}

// carry brings one batch's answers, and has what was granted begin. While its partition is quiet, its claims lend their slots.
func (s sender) carry(draining context.Context, b *work.Batch) {
	if s.n.quiet.of(b.Part) || !s.claim(draining, b, false) {
		b.Again = true
		answered := s.n.quiet.aside(b.Part)
		b.Lent = true
		s.n.Inbox.Tell(agenda.Lend{Slots: len(b.Claims)})
		s.claim(draining, b, true)
		answered()
	}
	s.start(b)
	s.n.Answers <- b
}

// claim asks until there is an answer. A copy of a request can be granted until MaxSkew after it
// was sent (then the clock check refuses it), and ticks become old while Redis is away. So copies
// that can be granted are sent for MaxSkew only; from then on the batch asks whether it was
// granted, and a no is final when no copy can be under way any more. An error that is not Redis
// being away is the batch's own: it goes back to the agenda, so that it keeps no other waiting.
// False, only when not aside: its partition is quiet or held, or its master's clock is not the others', and it is to be called again aside.
func (s sender) claim(draining context.Context, b *work.Batch, aside bool) (answered bool) {
	skew := s.n.MaxSkew
	for try := 0; ; try++ {
		if b.Asked.IsZero() && (draining.Err() != nil || time.Since(b.Made) > 2*skew) {
			b.Err = work.ErrNotSent
			return true
		}
		if b.Asked.IsZero() {
			b.Asked, b.Slept = time.Now(), locking.Slept()
		}
		asking := time.Since(b.Asked) > skew
		if asking {
			b.Ask(s.n.Clock.Now().UnixMilli())
		} else {
			b.Copied = time.Now()
		}
		b.Sent = time.Now()
		b.Answers, b.Err = s.once(b)
		switch {
		case b.Err == nil:
			s.n.quiet.ok(roleClaim, b.Part)
			s.unconfirmed(b)
			if !asking || time.Since(b.Copied) > 2*skew || !b.Unsure() {
				return true
			}
		case errors.Is(b.Err, errHolding), errors.Is(b.Err, ledger.ErrServer):
			if errors.Is(b.Err, ledger.ErrServer) {
				s.n.failover.doubt()
			}
			if try = -1; !b.Unanswered {
				b.Asked = time.Time{} // nothing was carried out
			}
		case errors.Is(b.Err, ledger.ErrClock):
			s.n.Health.Fail(roleClaim, b.Err)
			s.n.Resample(context.Background())
		case errors.Is(b.Err, locking.ErrUnreachable):
			b.Unanswered = true
			s.n.quiet.fail(roleClaim, b.Err, b.Part)
		default:
			s.n.Health.Fail(roleClaim, b.Err)
			return true
		}
		if draining.Err() != nil && !b.Asked.IsZero() && time.Since(b.Asked) > 3*skew {
			return true
		}
		if !aside && (s.n.quiet.of(b.Part) || s.n.quiet.apart && b.Err != nil) {
			return false
		}
		b.Again = true
		wait.For(context.Background(), wait.Backoff(s.n.ID+b.Claims[0].Run, max(0, try)))
	}
}

// unconfirmed tells of grants that too few replicas have.
func (s sender) unconfirmed(b *work.Batch) {
	for _, a := range b.Answers {
		if a.Unconfirmed != nil {
			s.n.quiet.unconfirmed(a.Unconfirmed, s.n.Ledger.SameMaster(context.Background(), b.Part)...)
			return
		}
	}
}

// CallTimeout bounds one call to Redis.
const CallTimeout = time.Second

func (s sender) once(b *work.Batch) ([]ledger.Answer, error) {
	if err := s.n.Clock.Usable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrClock, err)
	}
	if s.n.failover.holds(b.Part) {
		return nil, errHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	by := ledger.Claimer{ID: s.n.ID, Name: s.n.Name}
	b.Server = s.n.failover.claims()
	answers, err := s.n.Ledger.At(b.Server).Claim(ctx, by, s.n.Clock.Now().UnixMilli(), b.Claims)
	return answers, s.n.quiet.full(err)
}
