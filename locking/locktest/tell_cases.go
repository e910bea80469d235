package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func tellCases() []Case {
	return []Case{
		{Name: "unreachable is not held", Run: unreachable},
		{Name: "told before taken", Run: toldBeforeTaken(Network.Cut)},
		{Name: "told before taken, requests silenced", Run: toldBeforeTaken(Network.CutRequests)},
		{Name: "told before taken, replies silenced", Run: toldBeforeTaken(Network.CutReplies)},
		{Name: "told before taken, replies delayed", Run: toldBeforeTaken(func(n Network) { n.Delay(2 * ttl) })},
		{Name: "a grant that comes after its ttl", Run: grantTooLate},
		{Name: "a locker's acquire with its reply lost", Run: lockerAcquireLostReply},
		{Name: "a locker's release with its reply lost", Run: lockerReleaseLostReply},
	}
}

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

// watch notes when the lease's context ends.
func watch(lease *locking.Lease) (told *time.Time, seen <-chan struct{}) {
	told = new(time.Time)
	done := make(chan struct{})
	go func() { // ends with the lease, or with the test's context
		defer close(done)
		<-lease.Context().Done()
		*told = time.Now()
	}()
	return told, done
}

// toldBeforeTaken is the promise of the whole package: a holder that the
// network has silenced is told before anybody else can have the lock.
func toldBeforeTaken(silence func(n Network)) func(tb testing.TB, s Store) {
	return func(tb testing.TB, s Store) {
		d, n := s.Connect(tb)
		a := mustTake(tb, locker(tb, d), locking.Options{TTL: ttl})
		mustExtend(tb, a) // whatever the first renewal does besides is done
		told, seen := watch(a)
		silence(n)
		other, _ := s.Connect(tb)
		b, err := take(tb, other, locking.Options{TTL: ttl, Wait: long})
		taken := time.Now()
		noError(tb, "acquire after the holder was silenced", err)
		wantTold(tb, a, seen)
		tb.Logf("told %s before it was taken", taken.Sub(*told))
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

// hear waits until the holder of a lease has heard that it is lost.
func hear(tb testing.TB, seen <-chan struct{}) {
	tb.Helper()
	select {
	case <-seen:
	case <-time.After(long):
		tb.Fatalf("the holder has not heard within %s that its lease is lost", long)
	}
}

// wantTold fails when the holder of lease a has not heard that it is lost.
func wantTold(tb testing.TB, a *locking.Lease, seen <-chan struct{}) {
	tb.Helper()
	select {
	case <-seen:
	default:
		if a.Context().Err() == nil {
			tb.Fatal("somebody else has the lock, and its holder has not been told")
		}
		<-seen // told; it is only that the one who notes it has not run yet
	}
	wantIs(tb, "cause of the lost lease's context", context.Cause(a.Context()), locking.ErrLeaseLost)
	if a.Valid() || !a.Lost() {
		tb.Fatalf("the lost lease says valid %t, lost %t", a.Valid(), a.Lost())
	}
}

// grantTooLate lets the answer "it is yours" come when somebody else has the
// lock already. Nobody may take it for a grant.
func grantTooLate(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	n.Delay(ttl * 4 / 3)
	l := locking.New(d, locking.Config{Margin: margin, CallTimeout: 2 * ttl})
	tb.Cleanup(l.Close)
	late := make(chan error, 1)
	go func() { // ends with the test's context
		_, err := l.Acquire(tb.Context(), name, locking.Options{TTL: ttl, Fixed: true})
		late <- err
	}()
	other, _ := s.Connect(tb)
	await(tb, "the request whose answer is delayed is carried out", slack, func() bool { return owner(tb, other).Held() })
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
