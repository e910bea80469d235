package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

// TestOneMasterOut: whatever fault fewer than half of the masters have, a lock is had and given
// back within the longest wait for a master.
func TestOneMasterOut(t *testing.T) {
	for _, n := range []int{3, 5} {
		c, all := servers(t, n)
		c.cfg.MasterTimeout = redlock.DefaultMasterTimeout
		d, _ := c.driver(t)
		cycle := func(what string) {
			t.Helper()
			const rounds = 10
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
		d.Wait() // the last release may still be under way to a master
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

// TestMajorityOut: without an answer from a majority the error is ErrUnreachable, in time.
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
	if acquire == nil {
		t.Fatal("one of three masters has granted the lock")
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
