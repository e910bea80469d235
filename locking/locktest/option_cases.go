package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func optionCases() []testCase {
	return []testCase{
		{name: "fixed", run: fixed},
		{name: "extend", run: extend},
		{name: "delay", run: delayed},
		{name: "delay and hint of a take-over", run: takenWith},
		{name: "a token larger than a hint", run: after},
		{name: "a hint from the future", run: afterTooFar},
	}
}

// countRenewals is a driver that counts the renewals that it gets.
type countRenewals struct {
	locking.Driver
	asked atomic.Int64
}

func (c *countRenewals) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	c.asked.Add(1)
	return c.Driver.Renew(ctx, batch)
}

func fixed(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	counted := &countRenewals{Driver: d}
	start := time.Now()
	a := mustTake(tb, locker(tb, counted), locking.Options{TTL: ttl, Fixed: true})
	deadline := a.Deadline()
	told, seen := watch(a)
	other, _ := s.Connect(tb)
	b, err := take(tb, other, locking.Options{TTL: ttl, Wait: ttl + slack()})
	taken := time.Now()
	noError(tb, "acquire after a fixed lease", err)
	wantLost(tb, a, seen)
	if early := deadline.Sub(*told); early > 0 {
		tb.Fatalf("the fixed lease ended %s before its deadline", early)
	}
	if early := ttl - taken.Sub(start); early > 0 {
		tb.Fatalf("the store gave the lock away %s before its ttl of %s had passed", early, ttl)
	}
	if n := counted.asked.Load(); n != 0 {
		tb.Fatalf("a fixed lease was renewed %d times", n)
	}
	noError(tb, "release", b.Release(tb.Context()))
}

func extend(tb testing.TB, s Store) {
	d, n := s.Connect(tb)
	a := mustTake(tb, locker(tb, d), locking.Options{TTL: ttl, Fixed: true})
	other, _ := s.Connect(tb)
	for range 4 {
		<-time.After(ttl / 3)
		before := a.Deadline()
		mustExtend(tb, a)
		if !a.Deadline().After(before) {
			tb.Fatalf("extended, and the deadline still is %s", before)
		}
	}
	_, err := acquire(tb, other, "b", ttl)
	left := wantHeld(tb, err, a.Owner(), ttl) // longer than one ttl after the start
	if late := time.Until(a.Deadline()) - left; late > 0 {
		tb.Fatalf("the local deadline is %s after the store's", late)
	}
	n.Cut()
	before := a.Deadline()
	wantIs(tb, "extend over a cut network", a.Extend(tb.Context()), locking.ErrUnreachable)
	if !a.Deadline().Equal(before) {
		tb.Fatalf("an extension without an answer moved the deadline by %s", a.Deadline().Sub(before))
	}
	n.Heal()
	b := mustTakeOver(tb, locker(tb, other), a.Token(), locking.Options{TTL: long})
	wantIs(tb, "extend of what another has", a.Extend(tb.Context()), locking.ErrLost)
	if a.Valid() {
		tb.Fatal("the extension was answered \"lost\", and the lease is valid")
	}
	noError(tb, "release", b.Release(tb.Context()))
	wantIs(tb, "extend after the end", b.Extend(tb.Context()), locking.ErrLost)
}

// delayed loses a holder: the lock is granted to no owner before ttl and delay have passed. A
// release ends the delay at once.
func delayed(tb testing.TB, s Store) {
	const delay = ttl / 2
	d, _ := s.Connect(tb)
	r := request("a", ttl)
	r.Delay = delay
	a := mustAsk(tb, d, r)
	other, _ := s.Connect(tb)
	if o := owner(tb, other); o.Left <= ttl || o.Left > ttl+delay {
		tb.Fatalf("others can have the lock in %s; want up to ttl %s and delay %s", o.Left, ttl, delay)
	}
	sent := time.Now()
	if got := renew(tb, d, renewal(a, ttl)); got[0] != locking.Renewed {
		tb.Fatalf("renew: %v", got[0])
	}
	b, err := take(tb, other, locking.Options{TTL: ttl, Delay: long, Wait: ttl + delay + slack()})
	noError(tb, "acquire after ttl and delay", err)
	if early := ttl + delay - time.Since(sent); early > 0 {
		tb.Fatalf("the store gave the lock away %s before ttl %s and delay %s had passed", early, ttl, delay)
	}
	if got := renew(tb, d, renewal(a, ttl)); got[0] != locking.Gone {
		tb.Fatalf("renewal of the lost lease: %v; want gone", got[0])
	}
	if left := time.Until(b.Deadline()); left > ttl {
		tb.Fatalf("the delay was given to the holder: its deadline is in %s", left)
	}
	noError(tb, "release", b.Release(tb.Context()))
	wantFree(tb, d, "right after the release of a lock with a delay")
}

// takenWith takes a lock over with Delay and After, which apply to a take-over too.
func takenWith(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	a := mustAcquire(tb, d, "a", long)
	r := request("b", long)
	r.From, r.Delay, r.After = a.Token, long/2, a.Token+600*aSecond
	if b := mustAsk(tb, d, r); b.Token <= r.After {
		tb.Fatalf("taken over with token %d; want more than the hint %d", b.Token, r.After)
	}
	if o := owner(tb, d); o.Left <= long || o.Left > long+r.Delay {
		tb.Fatalf("others can have the lock in %s; want up to ttl %s and delay %s", o.Left, long, r.Delay)
	}
	mustRelease(tb, d, "b")
}

// aSecond is a second in the unit of tokens, microseconds.
const aSecond locking.Token = 1e6

func after(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	first := mustTake(tb, l, locking.Options{TTL: long})
	noError(tb, "release", first.Release(tb.Context()))
	hint := first.Token() + 600*aSecond
	second := mustTake(tb, l, locking.Options{TTL: long, After: hint})
	if second.Token() <= hint {
		tb.Fatalf("token %d; want more than the hint %d", second.Token(), hint)
	}
	noError(tb, "release", second.Release(tb.Context()))
	third := mustTake(tb, l, locking.Options{TTL: long, After: first.Token()}) // an old hint takes nothing back
	if third.Token() <= second.Token() {
		tb.Fatalf("token %d after %d", third.Token(), second.Token())
	}
	noError(tb, "release", third.Release(tb.Context()))
}

// afterTooFar sets a token that no clock can have given yet. Accepting it would raise the tokens of all later holders.
func afterTooFar(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	first := mustTake(tb, l, locking.Options{TTL: long})
	noError(tb, "release", first.Release(tb.Context()))
	_, err := takeFrom(tb, l, locking.Options{TTL: long, After: first.Token() + 2*3600*aSecond})
	var refused *locking.InputError
	if !errors.As(err, &refused) || refused.Field != "Options.After" {
		tb.Fatalf("a hint two hours ahead: got %v; want an *InputError about Options.After", err)
	}
	next := mustTake(tb, l, locking.Options{TTL: long})
	if next.Token() > first.Token()+3600*aSecond {
		tb.Fatalf("the refused hint was accepted: token %d after %d", next.Token(), first.Token())
	}
	noError(tb, "release", next.Release(tb.Context()))
}
