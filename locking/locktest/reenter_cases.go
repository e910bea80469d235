package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func reenterCases() []testCase {
	return []testCase{
		{name: "re-enter", run: reenter},
		{name: "re-enter for more than is held", run: reenterForMore},
		{name: "re-enter a share for more than is held", needs: needsShares, run: reenterShare},
	}
}

func reenter(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	o := locking.Options{TTL: long, Reenter: true}
	a := mustTake(tb, l, o)
	b, err := l.Acquire(a.Context(), name, o)
	noError(tb, "acquire from inside", err)
	if b.Token() != a.Token() || b.Owner() != a.Owner() {
		tb.Fatalf("re-entered with token %d and owner %s; the hold has %d and %s", b.Token(), b.Owner(), a.Token(), a.Owner())
	}
	noError(tb, "release of the inner hold", b.Release(tb.Context()))
	if !a.Valid() {
		tb.Fatal("the inner release ended the outer hold")
	}
	other, _ := s.Connect(tb)
	_, err = locker(tb, other).Acquire(a.Context(), name, o) // another locker's hold is none
	wantHeld(tb, err, a.Owner(), long)
	c, err := a.Reenter(tb.Context())
	noError(tb, "re-enter", err)
	noError(tb, "release of the outer hold", a.Release(tb.Context()))
	<-c.Context().Done()
	wantIs(tb, "cause of the inner context", context.Cause(c.Context()), locking.ErrReleased)
	wantFree(tb, other, "after the release of the outer hold")
}

// wantRefused checks that the acquisition was refused for one of its options.
func wantRefused(tb testing.TB, what, field string, err error) {
	tb.Helper()
	var input *locking.InputError
	if !errors.As(err, &input) || input.Field != field {
		tb.Fatalf("%s: %v; want an *InputError for %s", what, err, field)
	}
}

// reenterForMore requests more inside a lock than its lease promises: a longer delay, a token above
// a larger one.
func reenterForMore(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	a := mustTake(tb, l, locking.Options{TTL: long, Delay: time.Second})
	for _, c := range []struct {
		field string // that is refused; "": none
		o     locking.Options
	}{
		{"", locking.Options{Delay: time.Second}},
		{"", locking.Options{After: a.Token() - 1}},
		{"", locking.Options{TTL: 2 * long, Fixed: true, Holder: "inside"}},
		{"Options.Delay", locking.Options{Delay: 2 * time.Second}},
		{"Options.After", locking.Options{After: a.Token()}},
		{"Options.After", locking.Options{After: a.Token() + 1}},
	} {
		if c.o.TTL == 0 {
			c.o.TTL = long
		}
		c.o.Reenter = true
		in, err := l.Acquire(a.Context(), name, c.o)
		all, together := l.AcquireAll(a.Context(), []string{name, nth("a")}, c.o)
		if c.field != "" {
			wantRefused(tb, "acquire from inside", c.field, err)
			wantRefused(tb, "acquire all from inside", c.field, together)
			continue
		}
		noError(tb, "acquire from inside", err)
		noError(tb, "acquire all from inside", together)
		noError(tb, "release of the inner holds", errors.Join(in.Release(tb.Context()), all.Release(tb.Context())))
	}
	noError(tb, "release", a.Release(tb.Context()))
}

// reenterShare requests each kind inside each kind of hold. A hold that may be shared is not enough
// for a kind that excludes other holders.
func reenterShare(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	exclusive, read, write := locking.Share{}, locking.Share{Mode: locking.Read}, locking.Share{Mode: locking.Write}
	two, three := locking.Share{Permits: 2}, locking.Share{Permits: 3}
	kinds := []locking.Share{exclusive, read, write, two, three}
	enough := map[[2]locking.Share]bool{{read, read}: true, {two, two}: true, {two, three}: true, {three, three}: true}
	for _, kind := range kinds { // a hold without other holders is enough for every kind
		enough[[2]locking.Share{exclusive, kind}], enough[[2]locking.Share{write, kind}] = true, true
	}
	options := func(s locking.Share) locking.Options {
		return locking.Options{TTL: long, Permits: s.Permits, Mode: s.Mode, Reenter: true}
	}
	for _, held := range kinds {
		a := mustTake(tb, l, options(held))
		inner, err := a.Reenter(a.Context()) // requests no kind, so is never refused
		noError(tb, "re-enter", err)
		for _, asked := range kinds {
			for depth, ctx := range []context.Context{a.Context(), inner.Context()} {
				in, err := l.Acquire(ctx, name, options(asked))
				all, together := l.AcquireAll(ctx, []string{name}, options(asked))
				if enough[[2]locking.Share{held, asked}] {
					noError(tb, asked.String()+" inside "+held.String(), errors.Join(err, together))
					noError(tb, "release of the inner holds", errors.Join(in.Release(tb.Context()), all.Release(tb.Context())))
				} else if !errors.As(err, new(*locking.InputError)) || !errors.As(together, new(*locking.InputError)) {
					tb.Fatalf("%s inside %s, %d holds deep: %v, %v; want an *InputError", asked, held, depth+1, err, together)
				}
			}
		}
		if all := holders(tb, d); len(all) != 1 || all[0].Owner != a.Owner() {
			tb.Fatalf("%s is held once, and the store says %+v", held, all)
		}
		noError(tb, "release", a.Release(tb.Context()))
	}
}
