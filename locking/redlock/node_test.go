package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// votes reports whether a master has its marker.
func votes(c cluster, e *redistest.Embedded) bool {
	return e.Mini().HGet("{"+c.cfg.Namespace+":redlock}", "r") != ""
}

// hold acquires a lock that has no other contender: its holder and a standby learn nothing of other
// locks' tokens.
func hold(t *testing.T, c cluster) locking.Grant {
	t.Helper()
	d, _ := c.driver(t)
	g, err := d.Acquire(t.Context(), request("held", "H"))
	if err != nil {
		t.Fatal(err)
	}
	d.Wait()
	return g
}

// rejoins renews g and requests its lock each second until the master emptied votes again and has
// the lock. It returns how long the vote took.
func rejoins(t *testing.T, c cluster, all []*redistest.Embedded, emptied int, g locking.Grant) (took time.Duration) {
	t.Helper()
	d, _ := c.driver(t) // without connections that broke
	for begun := time.Now(); ; time.Sleep(time.Second) {
		since := time.Since(begun)
		if renewed, err := d.Renew(t.Context(), renewal(g)); err != nil || renewed[0] != locking.Renewed {
			t.Fatalf("%s after one of the masters was emptied: %v, %v", since, renewed, err)
		}
		if _, err := d.Acquire(t.Context(), request(g.Name, "S")); !errors.Is(err, locking.ErrHeld) {
			t.Fatalf("%s after one of the masters was emptied: %v", since, err)
		}
		d.Wait()
		if took == 0 && votes(c, all[emptied]) {
			took = since
		}
		if took > 0 && holders(c, all, g.Name, g.Owner) == len(all) {
			return took
		}
		if since > time.Hour {
			t.Fatal("an emptied master does not vote again, or has not got the lock")
		}
	}
}

// TestEmptiedOneByOne: an emptied master votes by itself after 1.1 times the longest MaxTTL and a second. When all have been
// emptied, one after the other, none has the last token from its own memory, nor is the clock there yet.
func TestEmptiedOneByOne(t *testing.T) {
	for _, n := range []int{3, 5} {
		inBubble(t, func(t *testing.T) {
			c, all := embedded(t, n)
			c.bootstrap(t)
			held := hold(t, c)
			d, _ := c.driver(t)
			r := request("a", "A")
			r.After = time.Now().Add(50 * time.Minute).UnixMicro()
			a, err := d.Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Release(t.Context(), "a", "A"); err != nil {
				t.Fatal(err)
			}
			d.Wait()
			for i, e := range all {
				empty(t, e)
				if took := rejoins(t, c, all, i, held); took < 67*time.Second || took > 69*time.Second {
					t.Errorf("master %d votes after %s; want 1m7s", i, took)
				}
			}
			after, _ := c.driver(t) // without connections that broke
			b, err := after.Acquire(t.Context(), request("a", "B"))
			if err != nil || b.Token <= a.Token {
				t.Errorf("token %d, %v; want more than %d", b.Token, err, a.Token)
			}
		})
	}
}

// TestRejoinWaitsForTheLongest: the longest ttl of all clients counts, not the ttl of the client
// that finds the emptied master.
func TestRejoinWaitsForTheLongest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.cfg.MaxTTL = 10 * time.Minute
		c.bootstrap(t)
		c.cfg.MaxTTL = time.Minute
		held := hold(t, c)
		empty(t, all[1])
		if took := rejoins(t, c, all, 1, held); took < 11*time.Minute+time.Second || took > 11*time.Minute+3*time.Second {
			t.Errorf("it votes after %s; want 11m1s", took)
		}
	})
}

// TestNoMajorityRejoins: when half or more have lost their state no master votes by itself, however
// long the loss is known.
func TestNoMajorityRejoins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		empty(t, all[1])
		empty(t, all[2])
		d, _ := c.driver(t)
		for range 200 {
			if g, err := d.Acquire(t.Context(), request("a", "A")); err == nil {
				t.Fatalf("token %d of one master", g.Token)
			}
			d.Wait()
			time.Sleep(time.Second)
		}
		c.bootstrap(t)
		if _, err := d.Acquire(t.Context(), request("a", "B")); err != nil {
			t.Error(err)
		}
	})
}

// TestThinThroughRestarts: a holder outlives the restart of every master, one at a time and five
// minutes apart, while a standby requests the lock every second.
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
				time.Sleep(500 * time.Millisecond)
				if at%10 == 0 {
					renewed, err := h.Renew(t.Context(), renewal(g))
					if err != nil || renewed[0] != locking.Renewed {
						t.Fatalf("master %d was restarted, %d s later: %v, %v", i, at, renewed, err)
					}
				}
				time.Sleep(500 * time.Millisecond)
			}
			h.Wait()
			standby.Wait()
			if n := holders(c, all, "a", "H"); n != 3 {
				t.Fatalf("five minutes after master %d was restarted H has the lock at %d masters; want 3", i, n)
			}
		}
	})
}
