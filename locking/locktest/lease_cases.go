package locktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func unreachable(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	n.Cut()
	_, err := take(tb, d, locking.Options{TTL: ttl})
	wantIs(tb, "acquire over a cut network", err, locking.ErrUnreachable)
	if errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrLost) {
		tb.Fatalf("got %v; silence says neither that it is held nor that it was lost", err)
	}
	n.Heal()
	other, _ := s.Connect(tb)
	if _, err := take(tb, other, locking.Options{TTL: ttl, Wait: long}); err != nil {
		tb.Fatalf("acquire after the network healed: %v", err)
	}
}

// toldBeforeTaken is the promise of the whole package: a holder that the
// network has cut off silently is told before anybody else can have the lock.
func toldBeforeTaken(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	a, err := take(tb, d, locking.Options{TTL: ttl})
	if err != nil {
		tb.Fatal(err)
	}
	var told time.Time
	seen := make(chan struct{})
	go func() { // ends at the deadline, or with the test's context
		defer close(seen)
		<-a.Context().Done()
		told = time.Now()
	}()

	n.Cut()
	other, _ := s.Connect(tb)
	b, err := take(tb, other, locking.Options{TTL: ttl, Wait: long})
	taken := time.Now()
	if err != nil {
		tb.Fatalf("acquire after the holder was cut off: %v", err)
	}
	select {
	case <-seen:
	default:
		tb.Fatal("somebody else has the lock, and its holder has not been told")
	}
	tb.Logf("told %s before it was taken", taken.Sub(told))
	wantIs(tb, "cause of the lost lease's context", context.Cause(a.Context()), locking.ErrLeaseLost)
	if a.Valid() || !a.Lost() {
		tb.Fatalf("the lost lease says valid %t, lost %t", a.Valid(), a.Lost())
	}
	if b.Token() <= a.Token() {
		tb.Fatalf("token %d after %d", b.Token(), a.Token())
	}
	n.Heal()
	wantIs(tb, "release of the lost lease", a.Release(tb.Context()), locking.ErrLost)
	if !b.Valid() {
		tb.Fatal("the loser's release ended the winner's lease")
	}
	if err := b.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// keptAlive holds a lock for several times its ttl while somebody waits for it.
func keptAlive(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	start := time.Now()
	a, err := take(tb, d, locking.Options{TTL: ttl})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = take(tb, d, locking.Options{TTL: ttl, Wait: 2 * ttl})
	wantHeld(tb, err, a.Owner(), ttl)
	if waited := time.Since(start); waited < 2*ttl {
		tb.Fatalf("gave up after %s; want to wait for %s", waited, 2*ttl)
	}
	if !a.Valid() || a.Context().Err() != nil {
		tb.Fatalf("the lease ended although the store is healthy: %v", context.Cause(a.Context()))
	}
	if err := a.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	wantIs(tb, "cause after a release", context.Cause(a.Context()), locking.ErrReleased)
	if err := a.Release(tb.Context()); err != nil {
		tb.Fatalf("second release: %v", err)
	}
}

// oneAtATime lets a crowd contend, and looks for two inside and for a token
// that does not grow.
func oneAtATime(tb testing.TB, s Store) {
	const workers, rounds = 5, 4
	var inside atomic.Int32
	var mu sync.Mutex
	var last locking.Token
	work := func(l *locking.Locker) error {
		lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: long, Wait: long})
		if err != nil {
			return err
		}
		if n := inside.Add(1); n != 1 {
			tb.Errorf("%d hold the lock at once", n)
		}
		mu.Lock()
		if lease.Token() <= last {
			tb.Errorf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		mu.Unlock()
		inside.Add(-1)
		return lease.Release(tb.Context())
	}
	var wg sync.WaitGroup
	for range workers {
		d, _ := s.Connect(tb)
		l := locker(tb, d)
		wg.Go(func() {
			for range rounds {
				if err := work(l); err != nil {
					tb.Errorf("a contender: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
