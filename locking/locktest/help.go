package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// Times of the cases: long enough that a busy machine keeps the order of
// events, short enough to wait for.
const (
	long   = 30 * time.Second // a ttl that does not lapse during a case
	ttl    = 2 * time.Second  // a ttl that lapses; with its half in whole seconds, as some stores have them
	margin = 500 * time.Millisecond
	reply  = 300 * time.Millisecond // how long to wait for a reply that was lost
	name   = "order:42"
)

// slack is the time that a call and the scheduler may add to an expected event: a second in virtual
// time, which begins in the year 2000. In real time it ends a standstill, and judges nothing: how
// fast a machine is does not fail a driver.
func slack() time.Duration {
	if time.Now().Year() < 2020 {
		return time.Second
	}
	return 2 * time.Minute
}

// call calls f with a context for one call to a healthy store.
func call[T any](tb testing.TB, f func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	return f(ctx)
}

func request(owner string, ttl time.Duration) locking.Request {
	return locking.Request{Name: name, Owner: owner, TTL: ttl}
}

func ask(tb testing.TB, d locking.Driver, r locking.Request) (locking.Grant, error) {
	return call(tb, func(ctx context.Context) (locking.Grant, error) { return d.Acquire(ctx, r) })
}

func acquire(tb testing.TB, d locking.Driver, owner string, ttl time.Duration) (locking.Grant, error) {
	return ask(tb, d, request(owner, ttl))
}

func mustAcquire(tb testing.TB, d locking.Driver, owner string, ttl time.Duration) locking.Grant {
	tb.Helper()
	return mustAsk(tb, d, request(owner, ttl))
}

func mustAsk(tb testing.TB, d locking.Driver, r locking.Request) locking.Grant {
	tb.Helper()
	before := time.Now()
	g, err := ask(tb, d, r)
	if err != nil {
		tb.Fatalf("acquire for %s: %v", r.Owner, err)
	}
	if g.Name != r.Name || g.Owner != r.Owner || g.TTL != r.TTL || g.Delay != r.Delay || g.Token <= 0 {
		tb.Fatalf("acquire for %s: grant %+v; want name, owner, ttl and delay as asked and a positive token", r.Owner, g)
	}
	if after := time.Now(); g.Asked.After(after) {
		tb.Fatalf("acquire for %s: Asked is in the future", r.Owner)
	} else if g.Asked.Sub(before) > after.Sub(before)/2+50*time.Millisecond {
		tb.Fatalf("acquire for %s: Asked lies %s after the call began; read it before the request is sent", r.Owner, g.Asked.Sub(before))
	}
	return g
}

func release(tb testing.TB, d locking.Driver, owner string) error {
	_, err := call(tb, func(ctx context.Context) (struct{}, error) { return struct{}{}, d.Release(ctx, name, owner) })
	return err
}

// mustRelease returns when the lock is free at all servers. The release of a quorum lock goes on in
// the background at a minority; if the release before it still went on at another minority, the next
// owner would find no quorum.
func mustRelease(tb testing.TB, d locking.Driver, owner string) {
	tb.Helper()
	if err := release(tb, d, owner); err != nil {
		tb.Fatalf("release for %s: %v", owner, err)
	}
	awaitBackground(d)
}

// awaitBackground waits for calls that the driver goes on with after their caller has returned.
func awaitBackground(d locking.Driver) {
	if w, ok := d.(interface{ Wait() }); ok {
		w.Wait()
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
	return locking.Renewal{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: ttl, Delay: g.Delay}
}

// owner returns the holder of the lock. It repeats the call while a quorum releases in the
// background.
func owner(tb testing.TB, d locking.Driver) (o locking.Ownership) {
	tb.Helper()
	var err error
	for start := time.Now(); ; <-time.After(2 * time.Millisecond) {
		o, err = call(tb, func(ctx context.Context) (locking.Ownership, error) { return d.Owner(ctx, name) })
		if !errors.Is(err, locking.ErrUnreachable) || time.Since(start) > slack() {
			break
		}
	}
	noError(tb, "owner", err)
	return o
}

func revoke(tb testing.TB, d locking.Driver, token locking.Token) error {
	_, err := call(tb, func(ctx context.Context) (struct{}, error) { return struct{}{}, d.Revoke(ctx, name, token) })
	return err
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

func noError(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// wantFree acquires and releases the lock, and fails when that is not possible at once.
func wantFree(tb testing.TB, d locking.Driver, when string) {
	tb.Helper()
	lease, err := take(tb, d, locking.Options{TTL: long})
	noError(tb, "acquire "+when, err)
	noError(tb, "release", lease.Release(tb.Context()))
}

func locker(tb testing.TB, d locking.Driver) *locking.Locker {
	l := locking.New(d, locking.Config{Margin: margin, CallTimeout: reply})
	tb.Cleanup(l.Close)
	return l
}

// take acquires through a Locker of its own and closes the lease at the end.
func take(tb testing.TB, d locking.Driver, o locking.Options) (*locking.Lease, error) {
	return takeFrom(tb, locker(tb, d), o)
}

func takeFrom(tb testing.TB, l *locking.Locker, o locking.Options) (*locking.Lease, error) {
	lease, err := l.Acquire(tb.Context(), name, o)
	if err == nil {
		tb.Cleanup(lease.Close)
	}
	return lease, err
}

func mustTake(tb testing.TB, l *locking.Locker, o locking.Options) *locking.Lease {
	tb.Helper()
	lease, err := takeFrom(tb, l, o)
	noError(tb, "acquire", err)
	return lease
}

// mustExtend renews a lease now. A busy machine may need more than one call for it.
func mustExtend(tb testing.TB, a *locking.Lease) {
	tb.Helper()
	var err error
	for start := time.Now(); ; {
		if err = a.Extend(tb.Context()); !errors.Is(err, locking.ErrUnreachable) || time.Since(start) > slack() {
			break
		}
	}
	noError(tb, "extend", err)
}

func mustTakeOver(tb testing.TB, l *locking.Locker, from locking.Token, o locking.Options) *locking.Lease {
	tb.Helper()
	lease, err := l.TakeOver(tb.Context(), name, from, o)
	noError(tb, "take-over", err)
	tb.Cleanup(lease.Close)
	return lease
}

// await calls cond until it holds, and fails when that takes longer than within.
func await(tb testing.TB, what string, within time.Duration, cond func() bool) {
	tb.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > within {
			tb.Fatalf("not within %s: %s", within, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}
