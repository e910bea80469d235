package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func queueCases() []testCase {
	return []testCase{
		{name: "first come, first served", needs: needsQueue, run: firstCome},
		{name: "the first waiter is notified", needs: needsQueue, run: notified},
		{name: "a waiter that gives up leaves the queue", needs: needsQueue, run: givesUp},
		{name: "a waiter that is cut off does not block the queue", needs: needsQueue, run: cutOffWaiter},
		{name: "the queue waits for the end of a lost lease", needs: needsQueue, run: queueWaits},
		{name: "nobody overtakes the queue", needs: needsQueue, run: newcomerWaits},
		{name: "fair shares", needs: needsQueue, run: fairShares},
	}
}

// waiter is a queued acquisition with a client of its own.
type waiter struct {
	net    Network
	stop   context.CancelFunc
	result chan error // one value: how the wait ended
	lease  *locking.Lease
}

// connectTime is for a queued waiter to connect for notifications. A connection that is cut while it is made may hold a
// mutex, and in a bubble time stops while one is waited for.
const connectTime = 5 * time.Millisecond

// join queues a waiter, and returns when it has its place and is connected.
func join(tb testing.TB, s Store, watcher locking.Driver, place int, o locking.Options) *waiter {
	tb.Helper()
	d, n := s.Connect(tb)
	ctx, stop := context.WithCancel(tb.Context())
	w := &waiter{net: n, stop: stop, result: make(chan error, 1)}
	l := locker(tb, d)
	done := make(chan struct{})
	go func() { // ends with its wait, at the end of the case at the latest
		defer close(done)
		lease, err := l.Acquire(ctx, name, o)
		w.lease = lease
		w.result <- err
	}()
	tb.Cleanup(func() {
		stop()
		<-done
		if w.lease != nil {
			w.lease.Close()
		}
	})
	await(tb, fmt.Sprintf("%d are queued", place), slack(), func() bool { return owner(tb, watcher).Waiters == place })
	<-time.After(connectTime)
	return w
}

// mustGet waits until w has the lock.
func (w *waiter) mustGet(tb testing.TB, within time.Duration) *locking.Lease {
	tb.Helper()
	select {
	case err := <-w.result:
		noError(tb, "a waiter", err)
		return w.lease
	case <-time.After(within):
		tb.Fatalf("a waiter has not got the lock within %s", within)
		return nil
	}
}

func firstCome(tb testing.TB, s Store) {
	const many = 5
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	var queue []*waiter
	for i := range many {
		queue = append(queue, join(tb, s, d, i+1, locking.Options{TTL: long, Wait: long, Holder: fmt.Sprint("waiter ", i)}))
	}
	mustRelease(tb, d, "a")
	var last locking.Token
	for i, w := range queue {
		lease := w.mustGet(tb, locking.QueueTimeout+slack())
		if lease.Token() <= last {
			tb.Fatalf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		if o := owner(tb, d); o.Holder != fmt.Sprint("waiter ", i) || o.Waiters != many-1-i {
			tb.Fatalf("waiter %d has the lock; the store says %+v", i, o)
		}
		for j, behind := range queue[i+1:] {
			select {
			case err := <-behind.result:
				tb.Fatalf("waiter %d came before waiter %d (%v)", i+1+j, i, err)
			default:
			}
		}
		noError(tb, "release", lease.Release(tb.Context()))
	}
}

// notified measures how long a lock with a waiter is idle after a release. By polling, a waiter would need half a second
// and more.
func notified(tb testing.TB, s Store) {
	const most, tries = 400 * time.Millisecond, 3
	d, _ := s.Connect(tb)
	var idle []time.Duration
	for range tries {
		a := mustTake(tb, locker(tb, d), locking.Options{TTL: long})
		w := join(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
		start := time.Now()
		noError(tb, "release", a.Release(tb.Context()))
		b := w.mustGet(tb, locking.QueueTimeout+slack())
		idle = append(idle, time.Since(start))
		noError(tb, "release", b.Release(tb.Context()))
	}
	tb.Logf("the lock was idle for %v", idle)
	if slices.Min(idle) > most {
		tb.Fatalf("the lock was idle for %v each time; the first waiter must be notified", idle)
	}
}

func givesUp(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	w := join(tb, s, d, 1, locking.Options{TTL: long, Wait: time.Second})
	behind := join(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	var held *locking.HeldError
	if err := <-w.result; !errors.As(err, &held) || held.Place != 1 || held.Waited != time.Second {
		tb.Fatalf("the first waiter gave up with %v; want a *HeldError with its place and how long it waited", err)
	}
	await(tb, "the waiter that gave up has left the queue", locking.QueueTimeout/2+slack(), func() bool { return owner(tb, d).Waiters == 1 })
	gone := join(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	gone.stop()
	wantIs(tb, "acquire whose context was cancelled", <-gone.result, context.Canceled)
	await(tb, "the cancelled waiter has left the queue", locking.QueueTimeout/2+slack(), func() bool { return owner(tb, d).Waiters == 1 })
	mustRelease(tb, d, "a")
	noError(tb, "release", behind.mustGet(tb, locking.QueueTimeout+slack()).Release(tb.Context()))
}

// cutOffWaiter gives the lock to a waiter that is cut off.
func cutOffWaiter(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	cutOff := join(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	behind := join(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	cutOff.net.Cut()
	start := time.Now()
	mustRelease(tb, d, "a")
	lease := behind.mustGet(tb, locking.QueueTimeout+slack())
	tb.Logf("the second waiter had the lock after %s; the queue timeout is %s", time.Since(start), locking.QueueTimeout)
	cutOff.net.Heal()
	cutOff.stop()
	if err := <-cutOff.result; err == nil {
		tb.Fatal("the waiter that was cut off has a lease too")
	}
	noError(tb, "release", lease.Release(tb.Context()))
}

// newcomerWaits acquires while the lock is kept for the first waiter, which is cut off.
func newcomerWaits(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	first := join(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	first.net.Cut()
	mustRelease(tb, d, "a")
	_, err := acquire(tb, d, "newcomer", long)
	wantIs(tb, "acquire with a queue", err, locking.ErrHeld)
	first.net.Heal()
	noError(tb, "release", first.mustGet(tb, locking.QueueTimeout+slack()).Release(tb.Context()))
}

// queueWaits loses a holder while two waiters are queued.
func queueWaits(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	holder, _ := s.Connect(tb)
	start := time.Now()
	a := mustTake(tb, locker(tb, holder), locking.Options{TTL: 2 * ttl})
	first := join(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	join(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	a.Close() // as a crash: nothing is released
	lease := first.mustGet(tb, 3*ttl+slack())
	if early := 2*ttl - time.Since(start); early > 0 {
		tb.Fatalf("the lock was handed over %s before the lost lease ended", early)
	}
	if o := owner(tb, d); o.Owner != lease.Owner() || o.Waiters != 1 {
		tb.Fatalf("the first waiter has the lock; the store says %+v", o)
	}
	noError(tb, "release", lease.Release(tb.Context()))
}

// fairShares lets eight contend without a pause and compares their grants. Each works a little
// while it holds the lock: otherwise a contender that the machine keeps waiting, and not the store,
// joins the queue a round later than the rest.
func fairShares(tb testing.TB, s Store) {
	const contenders, grants, work = 8, 320, 3 * time.Millisecond
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	shares := make([]int, contenders)
	var total atomic.Int64
	var wg sync.WaitGroup
	for i := range shares {
		dd, _ := s.Connect(tb)
		l := locker(tb, dd)
		wg.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, name, locking.Options{TTL: long, Wait: long})
				if ctx.Err() == nil && err == nil {
					shares[i]++
				}
				if total.Add(1) >= grants {
					cancel()
				}
				<-time.After(work)
				if err == nil {
					err = lease.Release(ctx)
				}
				if err != nil && ctx.Err() == nil {
					tb.Errorf("contender %d: %v", i, err)
					cancel()
				}
			}
		})
	}
	defer wg.Wait() // also when the queue never fills
	defer cancel()
	await(tb, "all contenders are queued", slack(), func() bool { return owner(tb, d).Waiters == contenders })
	mustRelease(tb, d, "a")
	wg.Wait()
	tb.Logf("shares %v", shares)
	if least, most := slices.Min(shares), slices.Max(shares); float64(most) > 1.2*float64(least) {
		tb.Fatalf("of %d grants the contenders had %v; the largest share must be at most 1.2 times the smallest", grants, shares)
	}
}
