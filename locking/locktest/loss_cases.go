package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func lossCases() []testCase {
	return []testCase{
		{name: "unreachable is not held", run: unreachable},
		{name: "lost before granted", run: lostBeforeGranted(Network.Cut)},
		{name: "lost before granted, requests cut", run: lostBeforeGranted(Network.CutRequests)},
		{name: "lost before granted, replies cut", run: lostBeforeGranted(Network.CutReplies)},
		{name: "lost before granted, replies delayed", run: lostBeforeGranted(func(n Network) { n.Delay(2 * ttl) })},
		{name: "a grant that comes after its ttl", run: grantTooLate},
		{name: "a locker's acquire with its reply lost", run: lockerAcquireLostReply},
		{name: "a locker's release with its reply lost", run: lockerReleaseLostReply},
	}
}

func unreachable(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	n.Cut()
	_, err := take(tb, d, locking.Options{TTL: ttl})
	wantIs(tb, "acquire over a cut network", err, locking.ErrUnreachable)
	if errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrLost) {
		tb.Fatalf("got %v; a missing answer means neither held nor lost", err)
	}
	n.Heal()
	other, _ := s.Connect(tb)
	if _, err := take(tb, other, locking.Options{TTL: ttl, Wait: long}); err != nil {
		tb.Fatalf("acquire after the network healed: %v", err)
	}
}

// watch records when the lease's context ends.
func watch(lease *locking.Lease) (ended *time.Time, seen <-chan struct{}) {
	ended = new(time.Time)
	done := make(chan struct{})
	go func() { // ends with the lease, or with the test's context
		defer close(done)
		<-lease.Context().Done()
		*ended = time.Now()
	}()
	return ended, done
}

// lostBeforeGranted tests the promise of package locking: the context of a holder that is cut off
// ends before another owner can have the lock.
func lostBeforeGranted(cut func(n Network)) func(tb testing.TB, s Store) {
	return lostAs(locking.Options{}, cut)
}

// lostAs is lostBeforeGranted with other options, of which the last free one is acquired.
func lostAs(o locking.Options, cut func(n Network)) func(tb testing.TB, s Store) {
	return func(tb testing.TB, s Store) {
		d, n := s.Connect(tb)
		o.TTL = ttl
		a := mustTake(tb, locker(tb, d), o)
		mustExtend(tb, a) // the first renewal, which may do more, is over
		ended, seen := watch(a)
		cut(n)
		other, _ := s.Connect(tb)
		o.Wait = long
		b, err := take(tb, other, o)
		granted := time.Now()
		noError(tb, "acquire after the holder was cut off", err)
		wantLost(tb, a, seen)
		tb.Logf("lost %s before the next grant", granted.Sub(*ended))
		if b.Token() <= a.Token() {
			tb.Fatalf("token %d after %d", b.Token(), a.Token())
		}
		n.Heal()
		wantIs(tb, "release of the lost lease", a.Release(tb.Context()), locking.ErrLost)
		if !b.Valid() {
			tb.Fatal("the loser's release ended the winner's lease")
		}
		noError(tb, "release", b.Release(tb.Context()))
	}
}

// awaitLoss waits until the lease's context has ended.
func awaitLoss(tb testing.TB, seen <-chan struct{}) {
	tb.Helper()
	select {
	case <-seen:
	case <-time.After(long):
		tb.Fatalf("the context of a lost lease has not ended within %s", long)
	}
}

// wantLost fails when the context of lease a has not ended.
func wantLost(tb testing.TB, a *locking.Lease, seen <-chan struct{}) {
	tb.Helper()
	select {
	case <-seen:
	default:
		if a.Context().Err() == nil {
			tb.Fatal("another owner has the lock, and the holder's context has not ended")
		}
		<-seen // ended; watch has not run yet
	}
	wantIs(tb, "cause of the lost lease's context", context.Cause(a.Context()), locking.ErrLeaseLost)
	if a.Valid() || !a.Lost() {
		tb.Fatalf("the lost lease says valid %t, lost %t", a.Valid(), a.Lost())
	}
}

// grantTooLate delays the answer "granted" until another owner has the lock. The late answer must
// not count as a grant. A driver that needs more than one round trip may give up before it has
// requested the grant.
func grantTooLate(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	trips := max(s.Trips, 1)
	delay := ttl * 4 / 3 / time.Duration(trips)
	n.Delay(delay)
	l := locking.New(d, locking.Config{Margin: margin, CallTimeout: 2 * ttl})
	tb.Cleanup(l.Close)
	late := make(chan error, 1)
	go func() { // ends with the test's context
		_, err := l.Acquire(tb.Context(), name, locking.Options{TTL: ttl, Fixed: true})
		late <- err
	}()
	other, _ := s.Connect(tb)
	await(tb, "the request whose answer is delayed is carried out or given up", 4*ttl+slack(), func() bool {
		return len(late) > 0 || owner(tb, other).Held()
	})
	b := mustTake(tb, locker(tb, other), locking.Options{TTL: long, Wait: long})
	err := <-late
	n.Heal()
	if !errors.Is(err, locking.ErrHeld) && !errors.Is(err, locking.ErrUnreachable) {
		tb.Fatalf("acquire, answered %s after its ttl of %s: got %v; want %v or %v", ttl/3, ttl, err, locking.ErrUnreachable, locking.ErrHeld)
	}
	noError(tb, "release", b.Release(tb.Context()))
}

func lockerAcquireLostReply(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	l := locker(tb, d)
	n.LoseReply()
	a := mustTake(tb, l, locking.Options{TTL: long})
	other, _ := s.Connect(tb)
	o := owner(tb, other)
	if o.Owner != a.Owner() || o.Token != a.Token() {
		tb.Fatalf("the lease has owner %s and token %d; the store says %s and %d", a.Owner(), a.Token(), o.Owner, o.Token)
	}
	if late := time.Until(a.Deadline()) - o.Left; late > 0 {
		tb.Fatalf("the local deadline is %s after the store's", late)
	}
	noError(tb, "release", a.Release(tb.Context()))
	wantFree(tb, other, "after the release")
}

func lockerReleaseLostReply(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: long})
	n.LoseReply()
	noError(tb, "release with its reply lost", a.Release(tb.Context()))
	wantIs(tb, "cause after a release", context.Cause(a.Context()), locking.ErrReleased)
	other, _ := s.Connect(tb)
	wantFree(tb, other, "after the release")
}
