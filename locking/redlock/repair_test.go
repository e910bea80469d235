package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

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
