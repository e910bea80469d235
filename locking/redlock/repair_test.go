package redlock_test

import (
	"fmt"
	"testing"
	"time"
)

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
