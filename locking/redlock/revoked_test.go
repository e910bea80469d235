package redlock_test

import (
	"errors"
	"testing"

	"github.com/escapement/escapement/locking"
)

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
