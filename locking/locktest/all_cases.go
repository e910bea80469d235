package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/escapement/escapement/locking"
)

func allOfCases() []testCase {
	return []testCase{
		{name: "several locks, all or none", run: allOrNone},
		{name: "several locks in any order", run: allInAnyOrder},
		{name: "several locks, of which one is lost", run: allLost},
	}
}

// nth is the name of a lock beside name.
func nth(n string) string { return name + "/" + n }

// wantNone fails unless the names are free, or soon are: a place in a queue is given up in the background.
func wantNone(tb testing.TB, d locking.Driver, when string, names ...string) {
	tb.Helper()
	for _, n := range names {
		lease, err := locker(tb, d).Acquire(tb.Context(), n, locking.Options{TTL: long, Wait: slack()})
		noError(tb, "acquire "+n+" "+when, err)
		noError(tb, "release", lease.Release(tb.Context()))
	}
}

func allOrNone(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	other, _ := s.Connect(tb)
	l, ol := locker(tb, d), locker(tb, other)
	names := []string{nth("c"), nth("a"), nth("b"), nth("a")}
	set, err := l.AcquireAll(tb.Context(), names, locking.Options{TTL: long})
	noError(tb, "acquire all", err)
	var got []string
	for _, lease := range set.Leases() {
		got = append(got, lease.Name())
	}
	if len(got) != 3 || got[0] != nth("a") || got[1] != nth("b") || got[2] != nth("c") || !set.Valid() || set.Context().Err() != nil {
		tb.Fatalf("got the locks %q, valid %t, %v", got, set.Valid(), set.Context().Err())
	}
	_, err = ol.AcquireAll(tb.Context(), []string{nth("0"), nth("b")}, locking.Options{TTL: long, Wait: reply})
	wantIs(tb, "acquire all with one that is held", err, locking.ErrHeld)
	wantNone(tb, other, "after an AcquireAll in vain", nth("0"))
	noError(tb, "release of all", set.Release(tb.Context()))
	wantIs(tb, "cause after the release of all", context.Cause(set.Context()), locking.ErrReleased)
	wantNone(tb, other, "after the release of all", names[:3]...)
	if _, err := l.AcquireAll(tb.Context(), nil, locking.Options{TTL: long}); !errors.As(err, new(*locking.InputError)) {
		tb.Fatalf("acquire all of no names: %v; want an *InputError", err)
	}
}

// allInAnyOrder: contenders that name the locks in different orders do not wait for each other.
func allInAnyOrder(tb testing.TB, s Store) {
	var wg sync.WaitGroup
	for i := range 4 {
		d, _ := s.Connect(tb)
		l := locker(tb, d)
		names := []string{nth("a"), nth("b")}
		if i%2 == 1 {
			names = []string{nth("b"), nth("a")}
		}
		wg.Go(func() {
			for range 4 {
				set, err := l.AcquireAll(tb.Context(), names, locking.Options{TTL: long, Wait: long})
				if err == nil {
					err = set.Release(tb.Context())
				}
				if err != nil {
					tb.Errorf("contender %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func allLost(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	other, _ := s.Connect(tb)
	l, ol := locker(tb, d), locker(tb, other)
	o := locking.Options{TTL: ttl}
	set, err := l.AcquireAll(tb.Context(), []string{nth("a"), nth("b")}, o)
	noError(tb, "acquire all", err)
	first := set.Leases()[0]
	b, err := ol.TakeOver(tb.Context(), first.Name(), first.Token(), o)
	noError(tb, "take-over", err)
	awaitLoss(tb, set.Context().Done())
	wantIs(tb, "cause", context.Cause(set.Context()), locking.ErrLeaseLost)
	if set.Valid() || set.Context().Err() == nil {
		tb.Fatal("valid, with one of its leases lost")
	}
	wantIs(tb, "release of all, with one lost", set.Release(tb.Context()), locking.ErrLost)
	wantNone(tb, other, "after the release of all", nth("b"))
	noError(tb, "release", b.Release(tb.Context()))

	// One is lost while another is waited for.
	held, err := ol.Acquire(tb.Context(), nth("b"), locking.Options{TTL: long})
	noError(tb, "acquire", err)
	ended := make(chan error, 1)
	go func() { // ends with its wait
		_, err := l.AcquireAll(tb.Context(), []string{nth("a"), nth("b")}, locking.Options{TTL: ttl, Wait: long})
		ended <- err
	}()
	var token locking.Token
	await(tb, "the first lock is held", slack(), func() bool {
		own, err := ol.Owner(tb.Context(), nth("a"))
		token = own.Token
		return err == nil && own.Held()
	})
	noError(tb, "revoke", ol.Revoke(tb.Context(), nth("a"), token))
	wantIs(tb, "acquire all, with one lost meanwhile", <-ended, locking.ErrLost)
	noError(tb, "release", held.Release(tb.Context()))
}
