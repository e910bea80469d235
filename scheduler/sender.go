package scheduler

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// sender carries batches of claims to Redis and their answers back. A node has a few, one
// request in flight each.
type sender struct {
	n *Node
}

// run serves the engine until it closes the channel of batches. When draining ends, claims
// whose outcome is still unknown are given up.
func (s sender) run(draining context.Context) {
	for b := range s.n.engine.batches {
		s.claim(draining, b)
		s.n.engine.answers <- b
	}
}

// claim asks until there is an answer. Past twice MaxSkew after the first request no copy of
// that request can be granted any more (the clock check refuses it), and its ticks may have
// become old: from then on the batch only asks whether it was granted, and claims nothing new.
func (s sender) claim(draining context.Context, b *batch) {
	stale := 2 * s.n.cfg.MaxSkew
	for try := 0; ; try++ {
		if b.asked.IsZero() && (draining.Err() != nil || time.Since(b.made) > stale) {
			b.err = errors.New("claim not sent: Redis did not answer in time")
			return
		}
		if b.asked.IsZero() {
			b.asked, b.slept = time.Now(), locking.Slept()
		} else if time.Since(b.asked) > stale {
			ask(b)
		}
		b.answers, b.err = s.once(b)
		if b.err == nil {
			s.n.health.ok()
			return
		}
		s.n.health.fail(b.err)
		if errors.Is(b.err, ledger.ErrClock) {
			s.n.resample(context.WithoutCancel(draining))
		}
		if draining.Err() != nil && time.Since(b.asked) > stale {
			return
		}
		pause(context.Background(), backoff(try))
	}
}

func (s sender) once(b *batch) ([]ledger.Answer, error) {
	if err := s.n.clock.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.n.cfg.MaxSkew)
	defer cancel()
	by := ledger.Claimer{ID: s.n.id, Name: s.n.cfg.Name}
	return s.n.ledger.Claim(ctx, by, s.n.clock.now().UnixMilli(), b.claims)
}

// ask turns claims of ticks into mere questions: from no cursor nothing is granted, but a grant
// made before is found by its run id.
func ask(b *batch) {
	for i := range b.claims {
		b.claims[i].From = 0
	}
}

// backoff is how long to wait before try number try+1: doubling from 50 ms to 1 s, with jitter.
func backoff(try int) time.Duration {
	d := min(time.Second, 50*time.Millisecond<<min(try, 5))
	return d/2 + rand.N(d/2)
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
