package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// TestAskedAgain: an owner that repeats its request gets the granted token again, also from a
// quorum in which a master has promised it a larger one.
func TestAskedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		d, nets := c.driver(t)
		if _, err := all[2].Mini().HIncrBy("{"+c.cfg.Namespace+":redlock}", "h", 100); err != nil {
			t.Fatal(err) // as if it had granted other locks
		}
		ask := func(slow int) locking.Grant {
			t.Helper()
			nets[slow].Delay(5 * time.Millisecond)
			defer nets[slow].Delay(0)
			g, err := d.Acquire(t.Context(), request("a", "o"))
			if err != nil {
				t.Fatal(err)
			}
			d.Wait()
			return g
		}
		first := ask(2)
		if again := ask(0); again.Token != first.Token || !again.Asked.After(first.Asked) {
			t.Errorf("asked again: token %d at %s; want %d, from later on", again.Token, again.Asked, first.Token)
		}
		if err := d.Release(t.Context(), "a", "o"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Acquire(t.Context(), request("a", "o")); !errors.Is(err, locking.ErrLost) {
			t.Errorf("asked again after a release: %v; want ErrLost", err)
		}
	})
}

// TestRevokedIsAnother: a master that has missed a grant may have promised its token to the next owner. The revocation of
// the old grant hits that promise, and does not make the new one revoked.
func TestRevokedIsAnother(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, _ := embedded(t, 3)
		c.bootstrap(t)
		one, nets := c.driver(t)
		nets[2].Cut()
		a, err := one.Acquire(t.Context(), request("a", "A"))
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Release(t.Context(), "a", "A"); err != nil {
			t.Fatal(err)
		}
		one.Wait()
		nets[2].Heal()
		other, _ := c.driver(t)
		b, err := other.Acquire(t.Context(), request("a", "B"))
		if err != nil {
			t.Fatal(err)
		}
		other.Wait()
		if err := other.Revoke(t.Context(), "a", a.Token); !errors.Is(err, locking.ErrLost) {
			t.Errorf("revoke of a grant that is over: %v", err)
		}
		other.Wait()
		for range 20 { // whichever masters answer first
			o, err := other.Owner(t.Context(), "a")
			if err != nil || o.Owner != "B" || o.Token != b.Token || o.Revoked {
				t.Fatalf("got %+v, %v; want B with token %d, not revoked", o, err, b.Token)
			}
		}
	})
}
