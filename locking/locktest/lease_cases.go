package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func leaseCases() []testCase {
	return []testCase{
		{name: "kept alive", run: keptAlive},
		{name: "one at a time", run: oneAtATime},
		{name: "release all", run: releaseAll},
		{name: "do", run: do},
	}
}

// keptAlive holds a lock for several times its ttl while there is a waiter.
func keptAlive(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	start := time.Now()
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: ttl})
	_, err := take(tb, d, locking.Options{TTL: ttl, Wait: 2 * ttl})
	wantHeld(tb, err, a.Owner(), ttl)
	if waited := time.Since(start); waited < 2*ttl {
		tb.Fatalf("gave up after %s; want to wait for %s", waited, 2*ttl)
	}
	if !a.Valid() || a.Context().Err() != nil {
		tb.Fatalf("the lease ended although the store is healthy: %v", context.Cause(a.Context()))
	}
	noError(tb, "release", a.Release(tb.Context()))
	wantIs(tb, "cause after a release", context.Cause(a.Context()), locking.ErrReleased)
	noError(tb, "second release", a.Release(tb.Context()))
}

// oneAtATime checks, with several contenders, that there is one holder at a time, and that tokens increase.
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
		<-time.After(time.Millisecond) // so that another owner gets the lock, if one can
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

func releaseAll(tb testing.TB, s Store) {
	const many = 40
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	leases := make([]*locking.Lease, many)
	nth := func(i int) string { return fmt.Sprintf("%s/%d", name, i) }
	for i := range leases {
		lease, err := l.Acquire(tb.Context(), nth(i), locking.Options{TTL: long})
		noError(tb, "acquire", err)
		tb.Cleanup(lease.Close)
		leases[i] = lease
	}
	noError(tb, "release of all", l.ReleaseAll(tb.Context()))
	other, _ := s.Connect(tb)
	ol := locker(tb, other)
	for i, lease := range leases {
		wantIs(tb, "cause after the release of all", context.Cause(lease.Context()), locking.ErrReleased)
		b, err := ol.Try(tb.Context(), nth(i), locking.Options{TTL: long})
		noError(tb, "acquire after the release of all", err)
		noError(tb, "release", b.Release(tb.Context()))
	}
	noError(tb, "release of all, again", l.ReleaseAll(tb.Context()))
}

func do(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	other, _ := s.Connect(tb)
	l, ol := locker(tb, d), locker(tb, other)
	mine := errors.New("what f returned")
	err := l.Do(tb.Context(), name, locking.Options{TTL: ttl}, func(ctx context.Context, lease *locking.Lease) error {
		err := ol.Do(ctx, name, locking.Options{TTL: ttl}, func(context.Context, *locking.Lease) error {
			tb.Error("two are inside")
			return nil
		})
		wantHeld(tb, err, lease.Owner(), ttl)
		return mine
	})
	wantIs(tb, "do", err, mine)
	if errors.Is(err, locking.ErrLost) {
		tb.Fatalf("do: %v; the lock was not lost", err)
	}
	wantFree(tb, other, "after do")

	err = l.Do(tb.Context(), name, locking.Options{TTL: ttl}, func(ctx context.Context, lease *locking.Lease) error {
		b := mustTakeOver(tb, ol, lease.Token(), locking.Options{TTL: ttl})
		awaitLoss(tb, ctx.Done())
		return b.Release(tb.Context())
	})
	wantIs(tb, "do, with its lock lost before f returned", err, locking.ErrLost)
}
