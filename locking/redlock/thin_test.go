package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/locking/redlock"
)

// holders counts the masters at which owner has lock a.
func holders(c cluster, all []*redistest.Embedded, owner string) (n int) {
	for _, e := range all {
		if v, _ := e.Mini().Get("{" + c.cfg.Namespace + ":redlock:a}"); strings.HasSuffix(v, ":"+owner) {
			n++
		}
	}
	return n
}

func renewal(g locking.Grant) []locking.Renewal {
	return []locking.Renewal{{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL}}
}

// TestThinAmongOthers: a master that missed a lock gets it with a renewal also
// when it has granted other locks since, with larger tokens, or has been asked for
// this one by somebody who waits.
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
				if n := holders(c, all, "H"); n != 2 {
					t.Fatalf("H has it at %d masters; want 2", n)
				}
				if _, err := d.Renew(t.Context(), renewal(g)); err != nil {
					t.Fatal(err)
				}
				d.Wait()
				if n := holders(c, all, "H"); n != 3 {
					t.Errorf("renewed at %d masters; want 3", n)
				}
			})
		})
	}
}

// TestThinThroughRestarts: a holder outlives the restart of every master, one at a
// time and five minutes apart, while a standby asks every second.
func TestThinThroughRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		h, _ := c.driver(t)
		g, err := h.Acquire(t.Context(), request("a", "H"))
		if err != nil {
			t.Fatal(err)
		}
		h.Wait()
		for i, e := range all {
			empty(t, e)
			h, _ = c.driver(t) // without connections that broke
			standby, _ := c.driver(t)
			for at := range 300 {
				if _, err := standby.Acquire(t.Context(), request("a", "S")); err == nil {
					t.Fatal("the standby has the lock, and H holds it")
				}
				time.Sleep(time.Second)
				if at%10 > 0 {
					continue
				}
				o := request("other", fmt.Sprint(at)) // what repairs masters
				if _, err := h.Acquire(t.Context(), o); err == nil {
					_ = h.Release(t.Context(), o.Name, o.Owner)
				}
				h.Wait()
				if _, err := h.Renew(t.Context(), renewal(g)); err != nil {
					t.Fatalf("master %d was restarted, %d s later: %v", i, at, err)
				}
			}
			h.Wait()
			standby.Wait()
			if n := holders(c, all, "H"); n != 3 {
				t.Fatalf("five minutes after master %d was restarted H has the lock at %d masters; want 3", i, n)
			}
		}
	})
}

// TestLateTopUp: what a top-up brings does not come behind a grant to another
// owner, with or without a standby's request that was withdrawn in between.
func TestLateTopUp(t *testing.T) {
	for what, owners := range map[string][]string{"granted": {"B"}, "granted, and asked for": {"B", "S"}} {
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
				all[0].Mini().Del("{" + c.cfg.Namespace + ":redlock:a}") // a clock jumps ahead
				b, nets := c.driver(t)
				nets[1].Cut()
				if _, err := b.Acquire(t.Context(), request("a", "B")); err != nil {
					t.Fatal(err)
				}
				b.Wait()
				all[2].Mini().Del("{" + c.cfg.Namespace + ":redlock:a}") // and another
				if err := all[0].Mini().Set("{"+c.cfg.Namespace+":redlock:a}", fmt.Sprintf("%d:1:H", g.Token)); err != nil {
					t.Fatal(err)
				}
				d, _ := c.driver(t)
				if len(owners) > 1 {
					if _, err := d.Acquire(t.Context(), request("a", "S")); !errors.Is(err, locking.ErrHeld) {
						t.Fatal(err)
					}
					d.Wait()
				}
				if _, err := d.Renew(t.Context(), renewal(g)); err != nil {
					t.Fatal(err)
				}
				d.Wait()
				if n := holders(c, all, "H"); n != 2 {
					t.Errorf("H has the lock at %d masters; want 2: the third has granted it to B since", n)
				}
			})
		})
	}
}

// TestHeldForADay: what masters know of a lock does not lapse while it is held.
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

// TestReleaseToldAgain: what a master is told again in the background does not take
// what the same owner has asked for since.
func TestReleaseToldAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		d, nets := c.driver(t)
		nets[2].CutRequests()
		if err := d.Release(t.Context(), "a", "H"); !errors.Is(err, locking.ErrLost) {
			t.Fatal(err)
		}
		time.Sleep(redlock.DefaultMasterTimeout + time.Millisecond) // the third did not hear of it
		nets[2].Heal()
		if _, err := d.Acquire(t.Context(), request("a", "H")); err != nil {
			t.Fatal(err)
		}
		d.Wait()
		if n := holders(c, all, "H"); n != 3 {
			t.Errorf("H has it at %d masters; want 3", n)
		}
	})
}
