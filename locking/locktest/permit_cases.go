package locktest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func permitCases() []testCase {
	return []testCase{
		{name: "so many at once", needs: needsShares, run: soManyAtOnce},
		{name: "one kind at a time", needs: needsShares, run: oneKind},
		{name: "permits lapse", needs: needsShares, run: permitsLapse},
		{name: "a permit is lost before it is granted", needs: needsShares, run: permitLost},
		{name: "revoke and take over a permit", needs: needsShares, run: revokePermit},
		{name: "permits: first come, first served", needs: needsSharedQueue, run: firstComePermits},
		{name: "permits: the first waiter is notified", needs: needsSharedQueue, run: notifiedPermit},
		{name: "permits: fair shares", needs: needsSharedQueue, run: fairPermits},
	}
}

// permits are the options of a semaphore.
func permits(n int, o locking.Options) locking.Options {
	o.Permits = n
	return o
}

// holders returns the holders of the name.
func holders(tb testing.TB, d locking.Driver) []locking.Ownership {
	tb.Helper()
	all, err := d.(locking.Sharer).Holders(tb.Context(), name)
	noError(tb, "holders", err)
	return all
}

// soManyAtOnce takes all permits of a semaphore, and gives one back.
func soManyAtOnce(tb testing.TB, s Store) {
	const n = 3
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	var leases []*locking.Lease
	var last locking.Token
	for i := range n {
		lease := mustTake(tb, l, permits(n, locking.Options{TTL: long, Holder: fmt.Sprint("holder ", i)}))
		if lease.Token() <= last {
			tb.Fatalf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		leases = append(leases, lease)
	}
	_, err := takeFrom(tb, l, permits(n, locking.Options{TTL: long}))
	var held *locking.HeldError
	if !errors.As(err, &held) || !slices.ContainsFunc(leases, func(l *locking.Lease) bool { return l.Owner() == held.Owner }) {
		tb.Fatalf("one more than %d: %v; want a *HeldError with one of the holders", n, err)
	}
	for i, o := range holders(tb, d) {
		if o.Owner != leases[i].Owner() || o.Token != leases[i].Token() || o.Holder != fmt.Sprint("holder ", i) || o.Left <= 0 || o.Share.Permits != n {
			tb.Fatalf("holder %d is %+v", i, o)
		}
	}
	if o := owner(tb, d); o.Owner != leases[0].Owner() || len(holders(tb, d)) != n {
		tb.Fatalf("owner says %+v, and there are %d holders; want the first of %d", o, len(holders(tb, d)), n)
	}
	noError(tb, "release", leases[1].Release(tb.Context()))
	again := mustTake(tb, l, permits(n, locking.Options{TTL: long}))
	if again.Token() <= last {
		tb.Fatalf("token %d after %d", again.Token(), last)
	}
	leases[1] = again
	for _, lease := range leases {
		if !lease.Valid() {
			tb.Fatalf("the lease with token %d has ended", lease.Token())
		}
		noError(tb, "release", lease.Release(tb.Context()))
	}
	if all := holders(tb, d); len(all) != 0 {
		tb.Fatalf("%+v hold permits that all were given back", all)
	}
}

// oneKind requests a name that is in use for another kind.
func oneKind(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	kinds := map[string]locking.Options{
		"a lock": {}, "a semaphore of 2": {Permits: 2}, "a semaphore of 3": {Permits: 3}, "a reader": {Mode: locking.Read},
	}
	for held, o := range kinds {
		o.TTL = long
		lease := mustTake(tb, l, o)
		for asked, other := range kinds {
			other.TTL = long
			_, err := takeFrom(tb, l, other)
			if asked != held && !errors.As(err, new(*locking.InputError)) {
				tb.Fatalf("%s, when the name is in use as %s: %v; want an *InputError", asked, held, err)
			}
		}
		if err := l.ReleaseAll(tb.Context()); err != nil || lease.Valid() {
			tb.Fatalf("after the release of all: %v, valid %t", err, lease.Valid())
		}
	}
	for _, bad := range []locking.Options{{Permits: -1}, {Permits: locking.MaxPermits + 1}, {Mode: 3}, {Permits: 2, Mode: locking.Read}} {
		bad.TTL = long
		if _, err := takeFrom(tb, l, bad); !errors.As(err, new(*locking.InputError)) {
			tb.Fatalf("permits %d, mode %s: %v; want an *InputError", bad.Permits, bad.Mode, err)
		}
	}
}

// permitsLapse loses one of two holders.
func permitsLapse(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	kept := mustTake(tb, l, permits(2, locking.Options{TTL: ttl}))
	start := time.Now()
	lost := mustTake(tb, l, permits(2, locking.Options{TTL: ttl}))
	lost.Close() // as a crash: nothing is released
	next := mustTake(tb, l, permits(2, locking.Options{TTL: long, Wait: long}))
	if early := ttl - time.Since(start); early > 0 {
		tb.Fatalf("the permit was granted %s before the lost lease ended", early)
	}
	if late := time.Since(start) - ttl - slack(); late > 0 {
		tb.Fatalf("the permit was granted %s too late", late)
	}
	if !kept.Valid() {
		tb.Fatal("the other holder has lost its permit")
	}
	wantIs(tb, "release of the lapsed permit", lost.Release(tb.Context()), locking.ErrLost)
	noError(tb, "release", kept.Release(tb.Context()))
	noError(tb, "release", next.Release(tb.Context()))
}

// permitLost is lostBeforeGranted for one of two permits, cut off by a network that keeps its replies back.
func permitLost(tb testing.TB, s Store) {
	keeps, _ := s.Connect(tb)
	mustTake(tb, locker(tb, keeps), permits(2, locking.Options{TTL: long}))
	lostAs(permits(2, locking.Options{}), Network.CutReplies)(tb, s)
	mustTake(tb, locker(tb, keeps), permits(2, locking.Options{TTL: long}))
}

func revokePermit(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	o := permits(2, locking.Options{TTL: ttl})
	a, b := mustTake(tb, l, o), mustTake(tb, l, o)
	wantIs(tb, "revoke of another grant", revoke(tb, d, b.Token()+1), locking.ErrLost)
	noError(tb, "revoke", revoke(tb, d, a.Token()))
	if all := holders(tb, d); len(all) != 2 || !all[0].Revoked || all[1].Revoked {
		tb.Fatalf("after the revocation of the first: %+v", all)
	}
	awaitLoss(tb, a.Context().Done())
	c := mustTakeOver(tb, l, b.Token(), o)
	awaitLoss(tb, b.Context().Done())
	if all := holders(tb, d); len(all) != 2 && len(all) != 1 || all[len(all)-1].Owner != c.Owner() {
		tb.Fatalf("after the take-over of the second: %+v", all)
	}
	noError(tb, "release", c.Release(tb.Context()))
}

func firstComePermits(tb testing.TB, s Store) {
	const n, many = 2, 5
	d, _ := s.Connect(tb)
	o := permits(n, locking.Options{TTL: long, Wait: long})
	l := locker(tb, d)
	queue := []*locking.Lease{mustTake(tb, l, o), mustTake(tb, l, o)}
	var waiters []*waiter
	for i := range many {
		waiters = append(waiters, join(tb, s, d, i+1, o))
	}
	for i, w := range waiters {
		noError(tb, "release", queue[i].Release(tb.Context()))
		lease := w.mustGet(tb, locking.QueueTimeout+slack())
		if lease.Token() <= queue[i+1].Token() {
			tb.Fatalf("token %d after %d", lease.Token(), queue[i+1].Token())
		}
		queue = append(queue, lease)
		for j, behind := range waiters[i+1:] {
			select {
			case err := <-behind.result:
				tb.Fatalf("waiter %d came before waiter %d (%v)", i+1+j, i, err)
			default:
			}
		}
	}
}

// notifiedPermit measures how long a permit with a waiter is idle after a release.
func notifiedPermit(tb testing.TB, s Store) {
	const most, tries = 400 * time.Millisecond, 3
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	o := permits(2, locking.Options{TTL: long, Wait: long})
	mustTake(tb, l, o)
	var idle []time.Duration
	for range tries {
		a := mustTake(tb, l, o)
		w := join(tb, s, d, 1, o)
		start := time.Now()
		noError(tb, "release", a.Release(tb.Context()))
		b := w.mustGet(tb, locking.QueueTimeout+slack())
		idle = append(idle, time.Since(start))
		noError(tb, "release", b.Release(tb.Context()))
	}
	if slices.Min(idle) > most {
		tb.Fatalf("the permit was idle for %v each time; the first waiter must be notified", idle)
	}
}

// fairPermits lets nine contend for three permits without a pause.
func fairPermits(tb testing.TB, s Store) {
	const n, contenders, grants = 3, 9, 360
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	var held []*locking.Lease
	for range n {
		held = append(held, mustTake(tb, l, permits(n, locking.Options{TTL: long})))
	}
	shares := make([]int, contenders)
	var total, inside atomic.Int64
	var wg sync.WaitGroup
	for i := range shares {
		dd, _ := s.Connect(tb)
		ll := locker(tb, dd)
		wg.Go(func() {
			for total.Load() < grants {
				lease, err := ll.Acquire(tb.Context(), name, permits(n, locking.Options{TTL: long, Wait: long}))
				if err != nil {
					tb.Errorf("contender %d: %v", i, err)
					return
				}
				if now := inside.Add(1); now > n {
					tb.Errorf("%d hold a semaphore of %d", now, n)
				}
				if total.Add(1) <= grants {
					shares[i]++
				}
				<-time.After(time.Millisecond)
				inside.Add(-1)
				if err := lease.Release(tb.Context()); err != nil {
					tb.Errorf("contender %d: %v", i, err)
				}
			}
		})
	}
	await(tb, "all contenders are queued", slack(), func() bool { return owner(tb, d).Waiters == contenders })
	for _, lease := range held {
		noError(tb, "release", lease.Release(tb.Context()))
	}
	wg.Wait()
	tb.Logf("shares %v", shares)
	if least, most := slices.Min(shares), slices.Max(shares); float64(most) > 1.2*float64(least) {
		tb.Fatalf("of %d grants the contenders had %v; the largest share must be at most 1.2 times the smallest", grants, shares)
	}
}
