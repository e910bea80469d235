package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// sender carries batches of claims to Redis and their answers back. A node has a few, with one
// request in flight each, and on a Cluster as many besides as are answered late, each of which has slots.
type sender struct {
	n     *Node
	aside *sync.WaitGroup // of the batches that keep no sender
}

// run serves the engine until it closes the channel of batches. When draining ends, claims
// whose outcome is still unknown are given up. On a Cluster no batch keeps the sender for long, for one at a slow master is
// not to keep those of others waiting.
func (s sender) run(draining context.Context) {
	for b := range s.n.engine.batches {
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
	within(done, unhurried)
}

// carry brings one batch's answers. While its partition is quiet, its claims lend their slots.
func (s sender) carry(draining context.Context, b *batch) {
	if s.n.quiet.of(b.part) || !s.claim(draining, b, false) {
		answered := s.n.quiet.aside(b.part)
		b.lent = true
		s.n.engine.lend(len(b.claims))
		s.claim(draining, b, true)
		answered()
	}
	s.n.engine.answers <- b
}

// claim asks until there is an answer. A copy of a request can be granted until MaxSkew after it
// was sent (then the clock check refuses it), and ticks become old while Redis is away. So copies
// that can be granted are sent for MaxSkew only; from then on the batch asks whether it was
// granted, and a no is final when no copy can be under way any more. An error that is not Redis
// being away is the batch's own: it goes back to the engine, so that it keeps no other waiting.
// False, only when not aside: its partition is quiet or held, or its master's clock is not the others', and it is to be called again aside.
func (s sender) claim(draining context.Context, b *batch, aside bool) (answered bool) {
	skew := s.n.cfg.MaxSkew
	for try := 0; ; try++ {
		if b.asked.IsZero() && (draining.Err() != nil || time.Since(b.made) > 2*skew) {
			b.err = errNotSent
			return true
		}
		if b.asked.IsZero() {
			b.asked, b.slept = time.Now(), locking.Slept()
		}
		asking := time.Since(b.asked) > skew
		if asking {
			ask(b, s.n.clock.now().UnixMilli())
		} else {
			b.copied = time.Now()
		}
		b.sent = time.Now()
		b.answers, b.err = s.once(b)
		switch {
		case b.err == nil:
			s.n.quiet.ok(roleClaim, b.part)
			s.unconfirmed(b)
			if !asking || time.Since(b.copied) > 2*skew || !unsure(b) {
				return true
			}
		case errors.Is(b.err, errHolding), errors.Is(b.err, ledger.ErrServer):
			if errors.Is(b.err, ledger.ErrServer) {
				s.n.failover.doubt()
			}
			if try = -1; !b.unanswered {
				b.asked = time.Time{} // nothing was carried out
			}
		case errors.Is(b.err, ledger.ErrClock):
			s.n.health.fail(roleClaim, b.err)
			s.n.resample(context.Background())
		case errors.Is(b.err, locking.ErrUnreachable):
			b.unanswered = true
			s.n.quiet.fail(roleClaim, b.err, b.part)
		default:
			s.n.health.fail(roleClaim, b.err)
			return true
		}
		if draining.Err() != nil && !b.asked.IsZero() && time.Since(b.asked) > 3*skew {
			return true
		}
		if !aside && (s.n.quiet.of(b.part) || s.n.quiet.apart && b.err != nil) {
			return false
		}
		pause(context.Background(), backoff(s.n.id+b.claims[0].Run, max(0, try)))
	}
}

// unconfirmed tells of grants that too few replicas have.
func (s sender) unconfirmed(b *batch) {
	for _, a := range b.answers {
		if a.Unconfirmed != nil {
			s.n.quiet.unconfirmed(a.Unconfirmed, s.n.ledger.SameMaster(context.Background(), b.part)...)
			return
		}
	}
}

// errNotSent is a batch's error when it could not be sent while its ticks were fresh, because Redis was away, grants were
// held or others stood before it, or before the node drained: nothing was carried out.
var errNotSent = errors.New("claim not sent while it was fresh")

// callTimeout bounds one call to Redis.
const callTimeout = time.Second

func (s sender) once(b *batch) ([]ledger.Answer, error) {
	if err := s.n.clock.usable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrClock, err)
	}
	if s.n.failover.holds(b.part) {
		return nil, errHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	by := ledger.Claimer{ID: s.n.id, Name: s.n.cfg.Name}
	b.server = s.n.failover.claims()
	answers, err := s.n.ledger.At(b.server).Claim(ctx, by, s.n.clock.now().UnixMilli(), b.claims)
	return answers, s.n.quiet.full(err)
}

// ask turns claims of ticks into mere questions: from no cursor nothing is granted, but a grant
// made before is found by its run id. Pending runs are asked for as they are, and may have become too late.
func ask(b *batch, now int64) {
	for i := range b.claims {
		b.claims[i].From = 0
		if b.claims[i].Pending {
			b.claims[i] = dropped(b.claims[i], b.jobs[i].dropAfter, now)
		}
	}
}

// unsure says whether a question was answered no for a tick, which another copy may still turn
// into a yes.
func unsure(b *batch) bool {
	for i, a := range b.answers {
		if !b.claims[i].Pending && (a.Verdict == ledger.Moved || a.Verdict == ledger.Closed) {
			return true
		}
	}
	return false
}

// backoff is how long to wait before try number try+1: doubling from 50 ms to 1 s, with jitter.
// who is an id that nobody else retries under at the same time, of a node or of a run: so callers
// that failed together do not retry together.
func backoff(who string, try int) time.Duration {
	d := min(time.Second, 50*time.Millisecond<<min(try, 5))
	return d/2 + spread(fmt.Sprint(who, " ", try), time.Now(), d/2)
}

// spread is a duration from 0 to below most that follows from its arguments alone, where others
// would draw a random one: a node must do the same again when it is shown the same again. What
// makes it differ from the next node's is the id in who.
func spread(who string, at time.Time, most time.Duration) time.Duration {
	return time.Duration(xxhash.Sum64String(fmt.Sprint(who, " ", at.UnixNano())) % uint64(most))
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
