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

// holders counts the masters at which owner has a lock.
func holders(c cluster, all []*redistest.Embedded, name, owner string) (n int) {
	for _, e := range all {
		if v, _ := e.Mini().Get("{" + c.cfg.Namespace + ":redlock:" + name + "}"); strings.HasSuffix(v, ":"+owner) {
			n++
		}
	}
	return n
}

func renewal(g locking.Grant) []locking.Renewal {
	return []locking.Renewal{{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL}}
}

// TestThinAmongOthers: a master that missed a lock gets it with a renewal, also when the master has
// granted other locks since, with larger tokens, or has refused this lock to a waiter.
func TestThinAmongOthers(t *testing.T) {
	for what, r := range map[string]locking.Request{"alone": {}, "another lock": request("b", "X"), "a standby": request("a", "S")} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, all := embedded(t, 3)
				c.bootstrap(t)
				h, nets := c.driver(t)
				nets[2].Cut()
				g, err := h.Acquire(t.Context(), request("a", "H"))
				if err != nil {
					t.Fatal(err)
				}
				h.Wait()
				nets[2].Heal()
				d, _ := c.driver(t)
				if r.Name != "" {
					if _, err := d.Acquire(t.Context(), r); err != nil && !errors.Is(err, locking.ErrHeld) {
						t.Fatal(err)
					}
					d.Wait()
				}
				if n := holders(c, all, "a", "H"); n != 2 {
					t.Fatalf("H has it at %d masters; want 2", n)
				}
				if _, err := d.Renew(t.Context(), renewal(g)); err != nil {
					t.Fatal(err)
				}
				d.Wait()
				if n := holders(c, all, "a", "H"); n != 3 {
					t.Errorf("renewed at %d masters; want 3", n)
				}
			})
		})
	}
}

// TestHeldForADay: the masters' state of a lock does not lapse while the lock is held.
func TestHeldForADay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, _ := embedded(t, 3)
		c.bootstrap(t)
		h, _ := c.driver(t)
		r := request("a", "H")
		r.TTL, r.Holder = redlock.DefaultMaxTTL, "billing on host-3"
		g, err := h.Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for time.Since(g.Asked) < 25*time.Hour {
			if _, err := h.Renew(t.Context(), renewal(g)); err != nil {
				t.Fatal(err)
			}
			h.Wait()
			time.Sleep(50 * time.Second)
		}
		if o, err := h.Owner(t.Context(), "a"); err != nil || o.Holder != r.Holder {
			t.Errorf("after 25 h: %+v, %v; want the holder's name", o, err)
		}
	})
}

// TestRepeatedRelease: a release that is repeated in the background does not take a lock that the
// same owner has acquired since.
func TestRepeatedRelease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		d, nets := c.driver(t)
		nets[2].CutRequests()
		if err := d.Release(t.Context(), "a", "H"); !errors.Is(err, locking.ErrLost) {
			t.Fatal(err)
		}
		time.Sleep(redlock.DefaultMasterTimeout + time.Millisecond) // the third did not get it
		nets[2].Heal()
		if _, err := d.Acquire(t.Context(), request("a", "H")); err != nil {
			t.Fatal(err)
		}
		d.Wait()
		if n := holders(c, all, "a", "H"); n != 3 {
			t.Errorf("H has it at %d masters; want 3", n)
		}
	})
}

// TestNoMemory: masters without memory renew and release their grants.
func TestNoMemory(t *testing.T) {
	c, _ := servers(t, 3)
	d, _ := c.driver(t)
	g, err := d.Acquire(t.Context(), request("a", "H"))
	if err != nil {
		t.Fatal(err)
	}
	clients, _ := c.clients(t)
	for _, client := range clients {
		if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Acquire(t.Context(), request("b", "H2")); err == nil || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("a new lock: %v; want Redis' own error", err)
	}
	for range 2 {
		if renewed, err := d.Renew(t.Context(), renewal(g)); err != nil || renewed[0] != locking.Renewed {
			t.Errorf("renewal: %v, %v", renewed, err)
		}
	}
	if err := d.Release(t.Context(), "a", "H"); err != nil {
		t.Errorf("release: %v", err)
	}
}
