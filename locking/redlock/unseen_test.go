package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

// TestBootstrapBesideUnseen: masters that know of nothing are new only if all of them say so. One that gives no answer may
// remember what the others have forgotten.
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
		nets[0].Cut() // by everybody, until the end
		empty(t, all[1])
		empty(t, all[2])

		clients, roads := c.clients(t)
		roads[0].Cut()
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
		roads.Heal()
	})
}
