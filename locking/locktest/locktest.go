package locktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// Network is the network of one client of the store.
type Network interface {
	// Cut makes it silent: nothing arrives and nobody gets an error before a
	// deadline.
	Cut()
	// Heal ends a Cut.
	Heal()
	// LoseReply lets the next request reach the store and loses its reply.
	LoseReply()
}

// Store is one empty store, made anew for each case.
type Store struct {
	// Connect returns a new client with a network of its own. Required. It
	// cleans up with tb.Cleanup.
	Connect func(tb testing.TB) (locking.Driver, Network)

	// Forget makes the store lose all it knows, as FLUSHALL does. nil says that
	// the store cannot lose anything.
	Forget func(tb testing.TB)
}

// Case is one demand on a driver.
type Case struct {
	Name string
	Run  func(tb testing.TB, s Store)
}

// Cases returns all demands, for a caller that runs them in its own way.
func Cases() []Case {
	return []Case{
		{"acquire, held, release", acquireHeldRelease},
		{"acquire repeated", acquireRepeated},
		{"acquire with its reply lost", acquireLostReply},
		{"release repeated", releaseRepeated},
		{"release with its reply lost", releaseLostReply},
		{"release of what is not ours", releaseNotOurs},
		{"renew answers each in order", renewAnswers},
		{"renew lasts", renewLasts},
		{"lapsed lease", lapsed},
		{"tokens grow", tokensGrow},
		{"tokens grow though the store forgets", tokensGrowForget},
		{"unreachable is not held", unreachable},
		{"told before taken", toldBeforeTaken},
		{"kept alive", keptAlive},
		{"one at a time", oneAtATime},
	}
}

// Run runs every case against a store of its own, in real time.
func Run(t *testing.T, open func(tb testing.TB) Store) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open(t)) })
	}
}

// RunInBubble runs every case in a testing/synctest bubble, for a store whose
// clock is time.Now and whose network has no sockets.
func RunInBubble(t *testing.T, open func(tb testing.TB) Store) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, open(t)) })
		})
	}
}

// Times of the cases: long enough that a busy machine keeps the order of
// events, short enough to wait for.
const (
	long   = 30 * time.Second        // a ttl that does not lapse during a case
	ttl    = 1500 * time.Millisecond // one that does
	margin = 500 * time.Millisecond
	reply  = 300 * time.Millisecond // how long to wait for a reply that was lost
	name   = "order:42"
)

// call gives f a context that lasts for one call to a healthy store.
func call[T any](tb testing.TB, f func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	return f(ctx)
}

func acquire(tb testing.TB, d locking.Driver, owner string, ttl time.Duration) (locking.Grant, error) {
	return call(tb, func(ctx context.Context) (locking.Grant, error) { return d.Acquire(ctx, name, owner, ttl) })
}

func mustAcquire(tb testing.TB, d locking.Driver, owner string, ttl time.Duration) locking.Grant {
	tb.Helper()
	before := time.Now()
	g, err := acquire(tb, d, owner, ttl)
	if err != nil {
		tb.Fatalf("acquire for %s: %v", owner, err)
	}
	if g.Name != name || g.Owner != owner || g.TTL != ttl || g.Token <= 0 {
		tb.Fatalf("acquire for %s: grant %+v; want name, owner and ttl as asked and a positive token", owner, g)
	}
	if after := time.Now(); g.Asked.After(after) {
		tb.Fatalf("acquire for %s: Asked is in the future", owner)
	} else if g.Asked.Sub(before) > after.Sub(before)/2+time.Millisecond {
		tb.Fatalf("acquire for %s: Asked lies %s after the call began; read it before the request is sent", owner, g.Asked.Sub(before))
	}
	return g
}

func release(tb testing.TB, d locking.Driver, owner string) error {
	_, err := call(tb, func(ctx context.Context) (struct{}, error) { return struct{}{}, d.Release(ctx, name, owner) })
	return err
}

func mustRelease(tb testing.TB, d locking.Driver, owner string) {
	tb.Helper()
	if err := release(tb, d, owner); err != nil {
		tb.Fatalf("release for %s: %v", owner, err)
	}
}

func renew(tb testing.TB, d locking.Driver, batch ...locking.Renewal) []locking.RenewAnswer {
	tb.Helper()
	answers, err := call(tb, func(ctx context.Context) ([]locking.RenewAnswer, error) { return d.Renew(ctx, batch) })
	if err != nil {
		tb.Fatalf("renew: %v", err)
	}
	if len(answers) != len(batch) {
		tb.Fatalf("renew: %d answers to %d renewals", len(answers), len(batch))
	}
	return answers
}

func renewal(g locking.Grant, ttl time.Duration) locking.Renewal {
	return locking.Renewal{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: ttl}
}

func wantHeld(tb testing.TB, err error, owner string, most time.Duration) time.Duration {
	tb.Helper()
	var held *locking.HeldError
	if !errors.As(err, &held) || !errors.Is(err, locking.ErrHeld) {
		tb.Fatalf("got %v; want a *HeldError", err)
	}
	if held.Name != name || held.Owner != owner || held.Until <= 0 || held.Until > most {
		tb.Fatalf("got %+v; want name %s, owner %s, time left up to %s", held, name, owner, most)
	}
	return held.Until
}

func wantIs(tb testing.TB, what string, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Fatalf("%s: got %v; want an error that is %q", what, err, target)
	}
}

func locker(tb testing.TB, d locking.Driver) *locking.Locker {
	l := locking.New(d, locking.Config{Margin: margin, CallTimeout: reply})
	tb.Cleanup(l.Close)
	return l
}

// take acquires through a Locker of its own and closes the lease at the end.
func take(tb testing.TB, d locking.Driver, o locking.Options) (*locking.Lease, error) {
	lease, err := locker(tb, d).Acquire(tb.Context(), name, o)
	if err == nil {
		tb.Cleanup(lease.Close)
	}
	return lease, err
}
