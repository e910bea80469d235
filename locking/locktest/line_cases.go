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

func lineCases() []Case {
	return []Case{
		{Name: "first come, first served", Needs: NeedsLine, Run: firstCome},
		{Name: "the first in line is called", Needs: NeedsLine, Run: called},
		{Name: "who gives up leaves the line", Needs: NeedsLine, Run: givesUp},
		{Name: "who is cut off does not block the line", Needs: NeedsLine, Run: cutOffInLine},
		{Name: "the line waits for the end of a lost lease", Needs: NeedsLine, Run: lineWaits},
		{Name: "nobody gets past the line", Needs: NeedsLine, Run: pastTheLine},
		{Name: "fair shares", Needs: NeedsLine, Run: fairShares},
	}
}

// waiter is one that waits in line, with a client of its own.
type waiter struct {
	net    Network
	stop   context.CancelFunc
	result chan error // one value: how the wait ended
	lease  *locking.Lease
}

// settling is time for a waiter to connect for calls once it stands in line. In a synctest bubble it is all the time that
// needs: a connection that is cut while it is made may hold a mutex, and time does not go on where one is waited for.
const settling = 5 * time.Millisecond

// stand puts a waiter in line and returns when it stands there, as the place-th, and has settled.
func stand(tb testing.TB, s Store, watcher locking.Driver, place int, o locking.Options) *waiter {
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
	await(tb, fmt.Sprintf("%d stand in line", place), slack, func() bool { return owner(tb, watcher).Waiters == place })
	<-time.After(settling)
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
	var line []*waiter
	for i := range many {
		line = append(line, stand(tb, s, d, i+1, locking.Options{TTL: long, Wait: long, Holder: fmt.Sprint("waiter ", i)}))
	}
	mustRelease(tb, d, "a")
	var last locking.Token
	for i, w := range line {
		lease := w.mustGet(tb, locking.QueueTimeout+slack)
		if lease.Token() <= last {
			tb.Fatalf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		if o := owner(tb, d); o.Holder != fmt.Sprint("waiter ", i) || o.Waiters != many-1-i {
			tb.Fatalf("waiter %d has the lock; the store says %+v", i, o)
		}
		for j, behind := range line[i+1:] {
			select {
			case err := <-behind.result:
				tb.Fatalf("waiter %d came before waiter %d (%v)", i+1+j, i, err)
			default:
			}
		}
		noError(tb, "release", lease.Release(tb.Context()))
	}
}

// called measures how long a lock lies idle that somebody waits for. Asking by
// itself, a waiter would take half a second and more each time.
func called(tb testing.TB, s Store) {
	const most, tries = 400 * time.Millisecond, 3
	d, _ := s.Connect(tb)
	var idle []time.Duration
	for range tries {
		a := mustTake(tb, locker(tb, d), locking.Options{TTL: long})
		w := stand(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
		start := time.Now()
		noError(tb, "release", a.Release(tb.Context()))
		b := w.mustGet(tb, locking.QueueTimeout+slack)
		idle = append(idle, time.Since(start))
		noError(tb, "release", b.Release(tb.Context()))
	}
	tb.Logf("the lock lay idle for %v", idle)
	if slices.Min(idle) > most {
		tb.Fatalf("the lock lay idle for %v each time; the first in line is to be called", idle)
	}
}

func givesUp(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	w := stand(tb, s, d, 1, locking.Options{TTL: long, Wait: slack})
	behind := stand(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	var held *locking.HeldError
	if err := <-w.result; !errors.As(err, &held) || held.Place != 1 || held.Waited != slack {
		tb.Fatalf("the first in line gave up with %v; want a *HeldError with its place and how long it waited", err)
	}
	await(tb, "who gave up has left the line", locking.QueueTimeout/2, func() bool { return owner(tb, d).Waiters == 1 })
	gone := stand(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	gone.stop()
	wantIs(tb, "acquire whose context was cancelled", <-gone.result, context.Canceled)
	await(tb, "who was cancelled has left the line", locking.QueueTimeout/2, func() bool { return owner(tb, d).Waiters == 1 })
	mustRelease(tb, d, "a")
	noError(tb, "release", behind.mustGet(tb, locking.QueueTimeout+slack).Release(tb.Context()))
}

// cutOffInLine gives the lock to a waiter that does not hear of it.
func cutOffInLine(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	deaf := stand(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	behind := stand(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	deaf.net.Cut()
	start := time.Now()
	mustRelease(tb, d, "a")
	lease := behind.mustGet(tb, locking.QueueTimeout+slack)
	tb.Logf("the second in line had the lock after %s; patience is %s", time.Since(start), locking.QueueTimeout)
	deaf.net.Heal()
	deaf.stop()
	if err := <-deaf.result; err == nil {
		tb.Fatal("who was cut off believes to have the lock too")
	}
	noError(tb, "release", lease.Release(tb.Context()))
}

// pastTheLine lets one come along while the lock is there for the first in line, who has not heard of it yet.
func pastTheLine(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	first := stand(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	first.net.Cut()
	mustRelease(tb, d, "a")
	_, err := acquire(tb, d, "passer-by", long)
	wantIs(tb, "acquire beside a line", err, locking.ErrHeld)
	first.net.Heal()
	noError(tb, "release", first.mustGet(tb, locking.QueueTimeout+slack).Release(tb.Context()))
}

// lineWaits loses a holder while others stand in line.
func lineWaits(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	holder, _ := s.Connect(tb)
	start := time.Now()
	a := mustTake(tb, locker(tb, holder), locking.Options{TTL: 2 * ttl})
	first := stand(tb, s, d, 1, locking.Options{TTL: long, Wait: long})
	stand(tb, s, d, 2, locking.Options{TTL: long, Wait: long})
	a.Close() // as a crash: nothing is given back
	lease := first.mustGet(tb, 3*ttl+slack)
	if early := 2*ttl - time.Since(start); early > 0 {
		tb.Fatalf("the lock was handed over %s before the lost lease ended", early)
	}
	if o := owner(tb, d); o.Owner != lease.Owner() || o.Waiters != 1 {
		tb.Fatalf("the first in line has the lock; the store says %+v", o)
	}
	noError(tb, "release", lease.Release(tb.Context()))
}

// fairShares lets eight contend without a pause and compares what they got.
func fairShares(tb testing.TB, s Store) {
	const contenders, grants = 8, 320
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
	defer wg.Wait() // also when the line never fills
	defer cancel()
	await(tb, "all contenders stand in line", slack, func() bool { return owner(tb, d).Waiters == contenders })
	mustRelease(tb, d, "a")
	wg.Wait()
	tb.Logf("shares %v", shares)
	if least, most := slices.Min(shares), slices.Max(shares); float64(most) > 1.2*float64(least) {
		tb.Fatalf("of %d grants the contenders had %v; the largest share is to be at most 1.2 times the smallest", grants, shares)
	}
}
