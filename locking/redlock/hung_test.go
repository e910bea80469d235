package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/locking/redlock"
)

// TestOneMasterOut: whatever happens to fewer than half of the masters, a lock
// is had and given back within the time that masters are waited for.
func TestOneMasterOut(t *testing.T) {
	for _, n := range []int{3, 5} {
		c, all := servers(t, n)
		c.cfg.MasterTimeout = redlock.DefaultMasterTimeout
		d, _ := c.driver(t)
		cycle := func(what string) {
			t.Helper()
			const rounds = 20
			var worst, sum time.Duration
			for range rounds {
				begun := time.Now()
				g, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: begun.String(), TTL: time.Minute})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if err := d.Release(t.Context(), "a", g.Owner); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				spent := time.Since(begun)
				worst, sum = max(worst, spent), sum+spent
			}
			t.Logf("N=%d, %s: acquire and release took %s on average, %s at most", n, what, sum/rounds, worst)
			if limit := 4 * redlock.DefaultMasterTimeout; worst > limit {
				t.Errorf("N=%d, %s: acquire and release took %s; want less than %s", n, what, worst, limit)
			}
		}
		cycle("all well")
		if err := all[0].Pause(); err != nil {
			t.Fatal(err)
		}
		cycle("one hung")
		if err := errors.Join(all[0].Resume(), all[0].Kill()); err != nil {
			t.Fatal(err)
		}
		cycle("one dead")
	}
}

// TestMajorityOut: silence is told as silence, in time.
func TestMajorityOut(t *testing.T) {
	c, all := servers(t, 3)
	d, _ := c.driver(t)
	for _, s := range all[:2] {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	_, acquire := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
	_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: 1, TTL: time.Minute}})
	_, owner := d.Owner(t.Context(), "a")
	release, revoke := d.Release(t.Context(), "a", "o"), d.Revoke(t.Context(), "a", 1)
	if spent, limit := time.Since(begun), 5*c.cfg.MasterTimeout+time.Second; spent > limit {
		t.Errorf("five calls took %s; want less than %s", spent, limit)
	}
	for i, s := range all {
		if named := strings.Contains(acquire.Error(), s.Addr()); named != (i < 2) {
			t.Errorf("%s: named in %v: %t", s.Addr(), acquire, named)
		}
	}
	for _, err := range []error{acquire, renew, owner, release, revoke} {
		if !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrLost) {
			t.Errorf("got %v; want ErrUnreachable alone", err)
		}
	}
	for _, s := range all[:2] {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostState walks masters through losing what they knew. It runs on embedded
// servers, whose clock a bubble moves.
func TestLostState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		d, _ := c.driver(t)
		try := func(owner string) (locking.Grant, error) {
			// What goes on after a majority has answered would reach a master after what happens to it next.
			defer d.Wait()
			return d.Acquire(t.Context(), locking.Request{Name: "a", Owner: owner, TTL: 30 * time.Second})
		}
		if _, err := try("early"); !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) {
			t.Fatalf("masters that are new: %v; want ErrUnreachable", err)
		}
		c.bootstrap(t)
		c.bootstrap(t) // again: a majority votes, nothing happens
		a, err := try("a")
		if err != nil {
			t.Fatal(err)
		}
		empty(t, all[0])
		// The lock is at two masters, and one of them has to vote.
		if _, err := try("b"); !errors.Is(err, locking.ErrHeld) {
			t.Fatalf("while it is held: %v", err)
		}
		if err := d.Release(t.Context(), "a", "a"); err != nil {
			t.Fatal(err)
		}
		// While it is kept from voting, the others must both be there.
		last := a.Token
		grant := func(owner string) {
			t.Helper()
			g, err := try(owner)
			if err != nil {
				t.Fatal(err)
			}
			if g.Token <= last {
				t.Fatalf("token %d after %d", g.Token, last)
			}
			last = g.Token
			if err := d.Release(t.Context(), "a", owner); err != nil {
				t.Fatal(err)
			}
			d.Wait()
		}
		grant("c")
		all[1].Stop()
		if _, err := try("d"); !errors.Is(err, locking.ErrUnreachable) {
			t.Fatalf("one amnesiac, one dead: %v; want ErrUnreachable", err)
		}
		if err := all[1].Restart(); err != nil { // with its data, which may be old
			t.Fatal(err)
		}
		d, _ = c.driver(t) // without connections that broke
		if _, err := try("e"); !errors.Is(err, locking.ErrUnreachable) {
			t.Fatalf("two restarted at once: %v; want ErrUnreachable", err)
		}
		time.Sleep(2 * redlock.DefaultMaxTTL)
		c.bootstrap(t)
		grant("f")

		empty(t, all[2])
		d, _ = c.driver(t) // as above
		grant("g")         // notes it
		time.Sleep(redlock.DefaultMaxTTL)
		grant("h") // too early
		all[0].Stop()
		if _, err := try("i"); !errors.Is(err, locking.ErrUnreachable) {
			t.Fatalf("one in quarantine, one dead: %v; want ErrUnreachable", err)
		}
		if err := all[0].Restart(); err != nil {
			t.Fatal(err)
		}
		all[0].SetRunID(runIDOf(t, c, 0)) // as if only the network had been away
		d, _ = c.driver(t)
		time.Sleep(redlock.DefaultMaxTTL)
		grant("j") // hears that the time is over
		grant("k") // repairs it
		all[0].Stop()
		grant("l") // with it
	})
}

// empty restarts a server without its data.
func empty(t *testing.T, e *redistest.Embedded) {
	t.Helper()
	e.Mini().FlushAll()
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
}

// TestThinQuorum: a master that missed a lock gets it with the next renewal, but
// not while it has lost its state, and not once the lock was given back.
func TestThinQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		d, nets := c.driver(t)
		lock := "{" + c.cfg.Namespace + ":redlock:a}"
		at := func() (n int) {
			d.Wait()
			for _, e := range all {
				if e.Mini().Exists(lock) {
					n++
				}
			}
			return n
		}
		nets[2].Cut()
		g, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: 30 * time.Second})
		if err != nil || at() != 2 {
			t.Fatalf("acquired at %d masters, %v; want 2", at(), err)
		}
		nets[2].Heal()
		renew := func() locking.RenewAnswer {
			t.Helper()
			answers, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: g.Token, TTL: g.TTL}})
			if err != nil {
				t.Fatal(err)
			}
			return answers[0]
		}
		for range 2 { // the first may meet a connection that the cut has broken
			if a := renew(); a != locking.Renewed {
				t.Fatal(a)
			}
			d.Wait()
		}
		if at() != 3 {
			t.Fatalf("renewed at %d masters; want 3", at())
		}
		all[0].Mini().FlushAll()
		if a := renew(); a != locking.Renewed || at() != 2 {
			t.Fatalf("%v at %d masters; want 2, the third has lost its state", a, at())
		}
		all[1].Mini().Del(lock)
		_, err = d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: g.Token, TTL: g.TTL}})
		if !errors.Is(err, locking.ErrUnreachable) || at() != 1 {
			t.Fatalf("%v at %d masters; one yes, one no and one that forgot say nothing", err, at())
		}
	})
}
