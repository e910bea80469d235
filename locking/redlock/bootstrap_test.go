package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

// thin has H hold lock a at masters 0 and 2 alone, and then empties the masters in lost.
func thin(t *testing.T, lost ...int) cluster {
	t.Helper()
	c, all := embedded(t, 3)
	c.bootstrap(t)
	h, nets := c.driver(t)
	nets[1].Cut()
	if _, err := h.Acquire(t.Context(), request("a", "H")); err != nil {
		t.Fatal(err)
	}
	h.Wait()
	for _, i := range lost {
		empty(t, all[i])
	}
	return c
}

// TestBootstrapOfUnseenMajority: a master that cannot be reached may be voting.
func TestBootstrapOfUnseenMajority(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := thin(t, 2) // masters 0 and 1 vote
		clients, nets := c.clients(t)
		nets[0].Cut()
		boot := func() {
			t.Helper()
			err := redlock.Bootstrap(t.Context(), clients, c.cfg)
			if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "1 vote, 1 gave no answer and may") {
				t.Errorf("bootstrap: %v; want ErrUnreachable", err)
			}
		}
		boot()
		b, nets := c.driver(t)
		nets[0].Cut()
		if g, err := b.Acquire(t.Context(), request("a", "B")); err == nil {
			t.Errorf("B has token %d, and H holds the lock", g.Token)
		}
		time.Sleep(2 * redlock.DefaultMaxTTL)
		boot() // waiting does not make it known
	})
}

// TestBootstrapWaits: where a master has state, the masters without state may have granted locks
// that are still held.
func TestBootstrapWaits(t *testing.T) {
	for what, lost := range map[string][]int{"one votes": {1, 2}, "none votes, one remembers": {1, 2, 0}} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := thin(t, lost[:2]...)
				clients, _ := c.clients(t)
				if len(lost) == 3 {
					if err := clients[0].HSet(t.Context(), "{kit:redlock}", "r", "another run").Err(); err != nil {
						t.Fatal(err)
					}
				}
				boot := func() error { return redlock.Bootstrap(t.Context(), clients, c.cfg) }
				if err := boot(); !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "try again in 1m7s") {
					t.Fatalf("bootstrap: %v; want ErrUnreachable, and for how long", err)
				}
				b, _ := c.driver(t)
				if g, err := b.Acquire(t.Context(), request("a", "B")); err == nil {
					t.Fatalf("B has token %d, and H holds the lock", g.Token)
				}
				time.Sleep(66 * time.Second)
				if err := boot(); !errors.Is(err, locking.ErrUnreachable) {
					t.Fatalf("a second too early: %v", err)
				}
				time.Sleep(time.Second)
				if err := boot(); err != nil {
					t.Fatal(err)
				}
				if _, err := b.Acquire(t.Context(), request("a", "B2")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestBootstrapWaitsForTheLongest: the longest ttl of all clients counts, not the ttl of
// Bootstrap's caller.
func TestBootstrapWaitsForTheLongest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.cfg.MaxTTL = time.Hour
		c.bootstrap(t)
		for _, e := range all[1:] {
			empty(t, e)
		}
		c.cfg.MaxTTL = time.Minute
		clients, _ := c.clients(t)
		if err := redlock.Bootstrap(t.Context(), clients, c.cfg); err == nil || !strings.Contains(err.Error(), "try again in 1h6m1s") {
			t.Errorf("bootstrap: %v; want it to wait for 1.1 hours and a second", err)
		}
		time.Sleep(66*time.Minute + time.Second)
		c.bootstrap(t) // one request for it is enough
	})
}

// TestBootstrapClocks: tokens follow the median of the clocks, and clocks that
// cannot all be meant are refused.
func TestBootstrapClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		step   time.Duration // of the last master
		refuse bool
	}{{59 * time.Minute, false}, {-59 * time.Minute, false}, {10 * year, true}, {-10 * year, true}, {61 * time.Minute, true}} {
		t.Run(tt.step.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, all := embedded(t, 3)
				all[2].StepClock(tt.step)
				clients, _ := c.clients(t)
				err := redlock.Bootstrap(t.Context(), clients, c.cfg)
				var refused *locking.InputError
				if tt.refuse {
					if !errors.As(err, &refused) || refused.Field != "masters[2]" || !strings.Contains(err.Error(), "10.0.0.3:6379") {
						t.Fatalf("bootstrap: %v; want an *InputError that names the third master", err)
					}
					all[2].StepClock(-tt.step)
					c.bootstrap(t)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				d, _ := c.driver(t)
				g, err := d.Acquire(t.Context(), request("a", "H"))
				if err != nil {
					t.Fatal(err)
				}
				if ahead := time.Until(time.UnixMicro(g.Token)); ahead < 59*time.Second || ahead > 61*time.Second {
					t.Errorf("tokens are %s ahead; want a minute", ahead)
				}
			})
		})
	}
}

// TestBootstrapBesideUnseen: empty masters are new only if all masters answer and all are empty. A
// master that gives no answer may have state that the other masters have lost.
func TestBootstrapBesideUnseen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, all := embedded(t, 3)
		c.bootstrap(t)
		time.Sleep(time.Hour)
		h, nets := c.driver(t)
		l := locking.New(h, locking.Config{})
		lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		h.Wait()
		nets[0].Cut() // from all clients, until the end
		empty(t, all[1])
		empty(t, all[2])

		clients, networks := c.clients(t)
		networks[0].Cut()
		boot := func() error { return redlock.Bootstrap(t.Context(), clients, c.cfg) }
		if err := boot(); !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "try again in 1m7s") {
			t.Errorf("bootstrap: %v; want ErrUnreachable, and for how long", err)
		}
		b, others := c.driver(t)
		others[0].Cut()
		g, err := b.Acquire(t.Context(), request("a", "B"))
		if err == nil && lease.Valid() {
			t.Errorf("two holders: %d is valid for %s, and B has token %d", lease.Token(), time.Until(lease.Deadline()), g.Token)
		}
		lease.Close()
		time.Sleep(68 * time.Second)
		if err := boot(); err != nil {
			t.Errorf("after the wait: %v", err)
		}
		b.Wait()
		nets.Heal()
		others.Heal()
		networks.Heal()
	})
}
