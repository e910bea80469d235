package locktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func driverCases() []testCase {
	return []testCase{
		{name: "acquire, held, release", run: acquireHeldRelease},
		{name: "acquire repeated", run: acquireRepeated},
		{name: "acquire with its reply lost", run: acquireLostReply},
		{name: "a late copy of an acquire", run: acquireLateCopy},
		{name: "release repeated", run: releaseRepeated},
		{name: "release with its reply lost", run: releaseLostReply},
		{name: "release of what is not ours", run: releaseNotOurs},
		{name: "renew answers each in order", run: renewAnswers},
		{name: "renew lasts", run: renewLasts},
		{name: "lapsed lease", run: lapsed},
		{name: "calls end with their context", run: callsEnd},
		{name: "tokens grow", run: tokensGrow},
		{name: "tokens grow though the store forgets", needs: needsForget, run: tokensGrowForget},
	}
}

func acquireHeldRelease(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", long)
	_, err := acquire(tb, d, "b", long)
	wantHeld(tb, err, "a", long)
	mustRelease(tb, d, "a")
	if b := mustAcquire(tb, d, "b", long); b.Token <= a.Token {
		tb.Fatalf("token %d after %d", b.Token, a.Token)
	}
}

func acquireRepeated(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", long)
	again := mustAcquire(tb, d, "a", long)
	if again.Token != a.Token {
		tb.Fatalf("the same owner got token %d, then %d", a.Token, again.Token)
	}
	_, err := acquire(tb, d, "b", long)
	left := wantHeld(tb, err, "a", long)
	if end := time.Now().Add(left); again.Asked.Add(again.TTL).After(end.Add(time.Millisecond)) {
		tb.Fatalf("the second grant claims the lock for %s longer than the store keeps it", again.Asked.Add(again.TTL).Sub(end))
	}
}

func acquireLostReply(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	n.LoseReply()
	ctx, cancel := context.WithTimeout(tb.Context(), reply)
	defer cancel()
	_, err := d.Acquire(ctx, request("a", long))
	wantIs(tb, "acquire with its reply lost", err, locking.ErrUnreachable)

	other, _ := s.Connect(tb)
	_, err = acquire(tb, other, "b", long)
	wantHeld(tb, err, "a", long) // so the request had arrived
	a := mustAcquire(tb, d, "a", long)
	_, err = acquire(tb, other, "b", long)
	left := wantHeld(tb, err, "a", long)
	if end := time.Now().Add(left); a.Asked.Add(a.TTL).After(end.Add(time.Millisecond)) {
		tb.Fatalf("the grant claims the lock for %s longer than the store keeps it", a.Asked.Add(a.TTL).Sub(end))
	}
	mustRelease(tb, d, "a")
	if b := mustAcquire(tb, other, "b", long); b.Token <= a.Token {
		tb.Fatalf("token %d after %d", b.Token, a.Token)
	}
}

// acquireLateCopy repeats the acquire of an owner that has released, as a network that delivers a request twice. A grant
// would never be released.
func acquireLateCopy(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	mustRelease(tb, d, "a")
	_, err := acquire(tb, d, "a", long)
	if o := owner(tb, d); o.Held() {
		tb.Fatalf("a late copy of an acquire has locked for %s (its answer: %v)", o.Owner, err)
	}
	if err == nil || errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) {
		tb.Fatalf("a late copy of an acquire: got %v; want %v, which is what is known", err, locking.ErrLost)
	}
	wantFree(tb, d, "after a late copy")
}

func releaseRepeated(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	mustAcquire(tb, d, "a", long)
	mustRelease(tb, d, "a")
	mustRelease(tb, d, "a")
	mustAcquire(tb, d, "b", long)
	mustRelease(tb, d, "a") // it did release; b has it now
	_, err := acquire(tb, d, "c", long)
	wantHeld(tb, err, "b", long)
}

func releaseLostReply(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	warm(tb, d)
	mustAcquire(tb, d, "a", long)
	n.LoseReply()
	ctx, cancel := context.WithTimeout(tb.Context(), reply)
	defer cancel()
	wantIs(tb, "release with its reply lost", d.Release(ctx, name, "a"), locking.ErrUnreachable)
	other, _ := s.Connect(tb)
	mustAcquire(tb, other, "b", long) // so the request had arrived
	mustRelease(tb, d, "a")
	_, err := acquire(tb, d, "c", long)
	wantHeld(tb, err, "b", long)
}

func releaseNotOurs(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	wantIs(tb, "release of a free lock", release(tb, d, "x"), locking.ErrLost)
	mustAcquire(tb, d, "a", long)
	wantIs(tb, "release of another's lock", release(tb, d, "x"), locking.ErrLost)
	_, err := acquire(tb, d, "b", long)
	wantHeld(tb, err, "a", long)
}

func renewAnswers(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", long)
	other, older, free := renewal(a, long), renewal(a, long), renewal(a, long)
	other.Owner, older.Token, free.Name = "x", a.Token-1, "free"
	got := renew(tb, d, other, renewal(a, long), older, free, renewal(a, long))
	want := []locking.RenewAnswer{locking.Gone, locking.Renewed, locking.Gone, locking.Gone, locking.Renewed}
	for i := range want {
		if got[i] != want[i] {
			tb.Fatalf("renew: got %v; want %v", got, want)
		}
	}
	mustRelease(tb, d, "a")
	if got := renew(tb, d, renewal(a, long)); got[0] != locking.Gone {
		tb.Fatalf("renew after release: %v; a renewal must not bring a lock back", got[0])
	}
	mustAcquire(tb, d, "b", long)
}

// renewLasts renews for longer than the ttl of the grant. A store whose leases belong to a session
// of that length refuses this with a *locking.InputError; there a renewal for the same ttl must
// last.
func renewLasts(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", ttl)
	longer, least := long, ttl
	_, err := call(tb, func(ctx context.Context) ([]locking.RenewAnswer, error) {
		return d.Renew(ctx, []locking.Renewal{renewal(a, long)})
	})
	if refused := new(locking.InputError); errors.As(err, &refused) {
		longer, least = ttl, ttl/2
		<-time.After(ttl/2 + 100*time.Millisecond)
		err = nil
		renew(tb, d, renewal(a, ttl))
	}
	noError(tb, "renew", err)
	_, err = acquire(tb, d, "b", ttl)
	if left := wantHeld(tb, err, "a", longer); left <= least {
		tb.Fatalf("renewed for %s, but only %s are left", longer, left)
	}
}

func lapsed(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", ttl)
	b, err := take(tb, d, locking.Options{TTL: long, Wait: long})
	if err != nil {
		tb.Fatalf("acquire after the lease of %s lapsed: %v", ttl, err)
	}
	if early := ttl - time.Since(a.Asked); early > 0 {
		tb.Fatalf("the store gave the lock away %s before its ttl of %s had passed", early, ttl)
	}
	if b.Token() <= a.Token {
		tb.Fatalf("token %d after %d, whose lease lapsed", b.Token(), a.Token)
	}
	if got := renew(tb, d, renewal(a, ttl)); got[0] != locking.Gone {
		tb.Fatalf("renewal of the lapsed lease: %v; want gone", got[0])
	}
	wantIs(tb, "release of the lapsed lease", release(tb, d, "a"), locking.ErrLost)
	if err := b.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// callsEnd makes calls over a cut network. A call that outlives its context delays all other
// leases, because the Keeper renews all leases in one call.
func callsEnd(tb testing.TB, s Store) {
	for what, f := range map[string]func(ctx context.Context, d locking.Driver, g locking.Grant) error{
		"acquire": func(ctx context.Context, d locking.Driver, g locking.Grant) error {
			_, err := d.Acquire(ctx, locking.Request{Name: g.Name, Owner: "b", TTL: long})
			return err
		},
		"renew": func(ctx context.Context, d locking.Driver, g locking.Grant) error {
			answers, err := d.Renew(ctx, []locking.Renewal{renewal(g, long)})
			if err == nil && len(answers) == 1 && answers[0] == locking.Unknown {
				return locking.ErrUnreachable
			}
			return err
		},
		"release": func(ctx context.Context, d locking.Driver, g locking.Grant) error {
			return d.Release(ctx, g.Name, g.Owner)
		},
		"owner": func(ctx context.Context, d locking.Driver, g locking.Grant) error {
			_, err := d.Owner(ctx, g.Name)
			return err
		},
		"revoke": func(ctx context.Context, d locking.Driver, g locking.Grant) error {
			return d.Revoke(ctx, g.Name, g.Token)
		},
	} {
		d, n := s.Connect(tb)
		g := mustAsk(tb, d, locking.Request{Name: name + "/" + what, Owner: "a", TTL: long}) // a failed request may be repeated later
		ctx, cancel := context.WithTimeout(tb.Context(), reply)
		defer cancel()
		n.Cut()
		came := make(chan error, 1)
		go func() { came <- f(ctx, d, g) }() // ends with its context, or when the network heals
		select {
		case err := <-came:
			n.Heal()
			wantIs(tb, what+" over a cut network", err, locking.ErrUnreachable)
		case <-time.After(reply + slack()):
			n.Heal()
			tb.Fatalf("%s: no answer %s after its context had ended", what, slack())
		}
	}
}

func tokensGrow(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	var last locking.Token
	for i := range 100 {
		g := mustAcquire(tb, d, fmt.Sprint("a", i), long)
		if g.Token <= last {
			tb.Fatalf("grant %d: token %d after %d", i, g.Token, last)
		}
		last = g.Token
		mustRelease(tb, d, g.Owner)
	}
}

func tokensGrowForget(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	var last locking.Token
	for i := range 10 {
		owner := fmt.Sprint("a", i)
		g := mustAcquire(tb, d, owner, long)
		if g.Token <= last {
			tb.Fatalf("grant %d: token %d after %d, which the store forgot", i, g.Token, last)
		}
		last = g.Token
		s.Forget(tb)
		<-time.After(time.Millisecond) // a store that forgot all has only its clock
		wantIs(tb, "release of a forgotten lock", release(tb, d, owner), locking.ErrLost)
	}
}

// warm makes the connection and the driver's first calls, and waits for its work in the background.
func warm(tb testing.TB, d locking.Driver) {
	tb.Helper()
	mustAcquire(tb, d, "warm", long)
	mustRelease(tb, d, "warm")
}
