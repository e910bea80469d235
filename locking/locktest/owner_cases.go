package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func ownerCases() []testCase {
	return []testCase{
		{name: "owner", run: owners},
		{name: "revoke", run: revoked},
		{name: "revoke of another grant", run: revokeOther},
		{name: "revoke of a lease that is not renewed", run: revokeCutOff},
		{name: "take-over", run: takeOver},
		{name: "take-over of another grant", run: takeOverOther},
	}
}

func owners(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	if o := owner(tb, d); o.Held() || o.Token != 0 || o.Waiters != 0 {
		tb.Fatalf("of a new lock: %+v; want nobody", o)
	}
	const who = "billing on host-3"
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: long, Holder: who})
	other, _ := s.Connect(tb)
	o := owner(tb, other)
	if o.Name != name || o.Owner != a.Owner() || o.Holder != who || o.Token != a.Token() || o.Revoked || o.Waiters != 0 {
		tb.Fatalf("got %+v; want owner %s, holder %s, token %d", o, a.Owner(), who, a.Token())
	}
	if o.Left <= long/2 || o.Left > long {
		tb.Fatalf("%s left of a new lease of %s", o.Left, long)
	}
	_, err := acquire(tb, other, "b", long)
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Holder != who {
		tb.Fatalf("got %v; want a *HeldError that says %q", err, who)
	}
	noError(tb, "release", a.Release(tb.Context()))
	if o := owner(tb, other); o.Held() {
		tb.Fatalf("after the release: %+v; want nobody", o)
	}
	mustAcquire(tb, d, "c", long)
	if o := owner(tb, d); o.Holder != "" {
		tb.Fatalf("the holder before was %q; the store says that of the next one too", o.Holder)
	}
}

// revoked revokes a lease: its context ends before another owner has the lock, within less than a ttl.
func revoked(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: 2 * ttl})
	ended, seen := watch(a)
	other, _ := s.Connect(tb)
	start := time.Now()
	noError(tb, "revoke", revoke(tb, other, a.Token()))
	noError(tb, "revoke, again", revoke(tb, other, a.Token()))
	if o := owner(tb, other); !o.Revoked || o.Owner != a.Owner() || o.Token != a.Token() {
		select {
		case <-seen: // its context has ended already
		default:
			tb.Fatalf("got %+v; want %s, revoked", o, a.Owner())
		}
	}
	b, err := take(tb, other, locking.Options{TTL: long, Wait: long})
	noError(tb, "acquire after a revocation", err)
	granted := time.Now()
	wantLost(tb, a, seen)
	if why := context.Cause(a.Context()); why == nil || !strings.Contains(why.Error(), "somebody has asked this holder to end") {
		tb.Fatalf("the holder's context has cause %v", why)
	}
	if ended.After(granted) {
		tb.Fatalf("the holder's context ended %s after another had the lock", ended.Sub(granted))
	}
	if took := ended.Sub(start); took > 2*ttl/3+slack() {
		tb.Fatalf("the holder's context ended after %s; it renews every %s", took, 2*ttl/3)
	}
	if b.Token() <= a.Token() {
		tb.Fatalf("token %d after %d", b.Token(), a.Token())
	}
	wantIs(tb, "release of the revoked lease", a.Release(tb.Context()), locking.ErrLost)
	if !b.Valid() || owner(tb, d).Revoked {
		tb.Fatal("the next holder was revoked too")
	}
	noError(tb, "release", b.Release(tb.Context()))
}

func revokeOther(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	wantIs(tb, "revoke of a free lock", revoke(tb, d, 7), locking.ErrLost)
	a := mustAcquire(tb, d, "a", long)
	mustRelease(tb, d, "a")
	b := mustAcquire(tb, d, "b", long)
	wantIs(tb, "revoke of a grant that is over", revoke(tb, d, a.Token), locking.ErrLost)
	if got := renew(tb, d, renewal(b, long)); got[0] != locking.Renewed || owner(tb, d).Revoked {
		tb.Fatalf("the revocation of an old grant hit the new one: %v", got[0])
	}
	mustRelease(tb, d, "b")
}

// revokeCutOff revokes a lease whose holder is cut off: it lasts until the holder's own deadline.
func revokeCutOff(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", ttl)
	noError(tb, "revoke", revoke(tb, d, a.Token))
	b, err := take(tb, d, locking.Options{TTL: long, Wait: ttl + slack()})
	noError(tb, "acquire after a revoked lease lapsed", err)
	if early := ttl - time.Since(a.Asked); early > 0 {
		tb.Fatalf("a revoked lease, whose holder does not know, was granted to another %s before its end", early)
	}
	noError(tb, "release", b.Release(tb.Context()))
}

func takeOver(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: ttl})
	_, seen := watch(a)
	other, _ := s.Connect(tb)
	b := mustTakeOver(tb, locker(tb, other), a.Token(), locking.Options{TTL: long, Holder: "operator"})
	if b.Token() <= a.Token() {
		tb.Fatalf("taken over with token %d from %d; want a larger one", b.Token(), a.Token())
	}
	if o := owner(tb, d); o.Owner != b.Owner() || o.Token != b.Token() || o.Holder != "operator" {
		tb.Fatalf("after the take-over the store says %+v", o)
	}
	awaitLoss(tb, seen) // by its next renewal
	wantIs(tb, "cause of the old holder's context", context.Cause(a.Context()), locking.ErrLeaseLost)
	wantIs(tb, "release by the old holder", a.Release(tb.Context()), locking.ErrLost)
	if !b.Valid() || owner(tb, d).Owner != b.Owner() {
		tb.Fatal("the old holder's release ended the new one's lease")
	}
	noError(tb, "release", b.Release(tb.Context()))
	wantFree(tb, d, "after a take-over was released")
}

func takeOverOther(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	a := mustAcquire(tb, d, "a", long)
	mustRelease(tb, d, "a")
	b := mustAcquire(tb, d, "b", long)
	for _, from := range []locking.Token{a.Token, b.Token + 1} {
		_, err := l.TakeOver(tb.Context(), name, from, locking.Options{TTL: long})
		wantHeld(tb, err, "b", long)
	}
	_, err := l.TakeOver(tb.Context(), name, 0, locking.Options{TTL: long})
	var refused *locking.InputError
	if !errors.As(err, &refused) {
		tb.Fatalf("take-over from nobody: got %v; want an *InputError", err)
	}
	if got := renew(tb, d, renewal(b, long)); got[0] != locking.Renewed {
		tb.Fatalf("a refused take-over ended the lease: %v", got[0])
	}
	mustRelease(tb, d, "b")
}
