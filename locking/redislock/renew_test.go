//go:build unix

package redislock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

func TestRenewManyLocks(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d := redislock.NewDriver(c, redislock.Config{})
		g, err := d.Acquire(t.Context(), request("o", time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]locking.Renewal, 500)
		for i := range batch {
			batch[i] = locking.Renewal{Name: "a", Owner: "o", Token: g.Token, TTL: time.Minute}
		}
		batch[250].Name = "b"
		c.ScriptFlush(t.Context())
		got, err := d.Renew(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if want := locking.Renewed; a != want && i != 250 || a != locking.Gone && i == 250 {
				t.Fatalf("renewal %d of %d: %v", i, len(batch), a)
			}
		}
	})
}

// TestRenewAnswersWhatItCan: one lock's error does not hide the answers for the other locks, and
// they do not hide the error.
func TestRenewAnswersWhatItCan(t *testing.T) {
	server := redistest.Start(t).Client(t)
	d := redislock.NewDriver(server, redislock.Config{Namespace: "kit"})
	g, err := d.Acquire(t.Context(), locking.Request{Name: "good", Owner: "o", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	server.SAdd(t.Context(), lockKeys("bad")[0], "x")
	got, err := d.Renew(t.Context(), []locking.Renewal{
		{Name: "bad", Owner: "o", Token: 1, TTL: time.Minute},
		{Name: "good", Owner: "o", Token: g.Token, TTL: time.Minute},
	})
	if !redis.HasErrorPrefix(err, "WRONGTYPE") || len(got) != 2 || got[0] != locking.Unknown || got[1] != locking.Renewed {
		t.Errorf("got %v, %v; want [unknown renewed], and why", got, err)
	}
}

// TestStateOutlivesALongHold: the state is kept for 25 h and the ttl, and renewals keep it for as long as the lock is held,
// however they are spaced. So the token still grows when Redis' clock was set back meanwhile.
func TestStateOutlivesALongHold(t *testing.T) {
	for _, every := range []time.Duration{0, 70 * time.Second, 25 * time.Minute, 50 * time.Minute} { // 0: the keeper renews
		inABubble(t, func(t *testing.T, e *redistest.Embedded, _ *redislock.Driver, l *locking.Locker) {
			time.Sleep(17 * time.Minute)
			o := locking.Options{TTL: 15 * time.Minute, Holder: "billing on host-3"}
			if every > 0 {
				o.TTL, o.Fixed = every*3/2, true
			}
			lease, err := l.Acquire(t.Context(), "a", o)
			if err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); time.Since(begun) < 27*time.Hour; {
				if every == 0 {
					time.Sleep(27 * time.Hour)
					continue
				}
				time.Sleep(every)
				if err := lease.Extend(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			state := lockKeys("a")[1]
			if o, err := l.Owner(t.Context(), "a"); err != nil || o.Holder != "billing on host-3" || e.Mini().HGet(state, "t") == "" {
				t.Errorf("extended every %s, held for 27 h: %+v, %v, token %q", every, o, err, e.Mini().HGet(state, "t"))
			}
			e.StepClock(-2 * time.Minute)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := e.Mini().TTL(state); left < 24*time.Hour {
				t.Errorf("extended every %s: the token is kept for %s after the release; want a day", every, left)
			}
			if next := hold(t, l, "a"); next.Token() <= lease.Token() {
				t.Errorf("token %d after %d", next.Token(), lease.Token())
			}
		})
	}
}
