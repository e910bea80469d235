package redislock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// The state is kept for 25 h and the ttl: a lock that is held for longer must not outlive it.
func TestStateOutlivesALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 15 * time.Minute, Holder: "billing on host-3"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(27 * time.Hour)
		o, err := l.Owner(t.Context(), "a")
		t.Log(o, err, lease.Valid())
		if o.Holder == "" {
			t.Error("held for 27 h, and nobody knows by whom")
		}
		if !e.Mini().Exists("{kit:lock:a}:token") {
			t.Error("the token is forgotten under a held lock")
		}
		// clock stepped back by two minutes meanwhile: the token does not grow
		e.StepClock(-2 * time.Minute)
		old := lease.Token()
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := e.Mini().TTL("{kit:lock:a}:token"); left < 24*time.Hour {
			t.Errorf("the token is kept for %s after the release; want a day", left)
		}
		n, err := l.Acquire(t.Context(), "a", locking.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n.Token() <= old {
			t.Errorf("token %d after %d", n.Token(), old)
		}
		_ = n.Release(t.Context())
		l.Close()
	})
}

// However the calls are spaced that keep a fixed lease, they keep the state.
func TestStateOutlivesAnExtendedLease(t *testing.T) {
	for _, every := range []time.Duration{20 * time.Second, 25 * time.Second, 20 * time.Minute, 29 * time.Minute, 50 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e, c := withEmbedded(t)
			l := redislock.New(c, redislock.Config{Namespace: "kit"})
			defer l.Close()
			time.Sleep(17 * time.Minute)
			lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: every * 3 / 2, Fixed: true})
			if err != nil {
				t.Fatal(err)
			}
			for start := time.Now(); time.Since(start) < 27*time.Hour; {
				time.Sleep(every)
				if err := lease.Extend(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !c.HExists(t.Context(), "{kit:lock:a}:token", "t").Val() {
				t.Errorf("extended every %s: the token is forgotten under a held lock", every)
			}
			if left := e.Mini().TTL("{kit:lock:a}:token"); left < 24*time.Hour {
				t.Errorf("extended every %s: the token is kept for %s after the release; want a day", every, left)
			}
		})
	}
}

// A state that was lost, and knows nothing of the line: those in it are not forgotten, nor overtaken.
func TestLineOutlivesItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		d, ctx := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), t.Context()
		defer d.HangUp()
		acquire := func(owner string, queue bool) error {
			_, err := d.Acquire(ctx, locking.Request{Name: "a", Owner: owner, TTL: 10 * time.Second, Queue: queue})
			return err
		}
		if err := acquire("holder", false); err != nil {
			t.Fatal(err)
		}
		for _, owner := range []string{"first", "second"} {
			if err := acquire(owner, true); !errors.Is(err, locking.ErrHeld) {
				t.Fatal(err)
			}
		}
		c.Del(ctx, "{kit:lock:a}:token")
		if err := d.Release(ctx, "a", "holder"); err != nil {
			t.Fatal(err)
		}
		if o, err := d.Owner(ctx, "a"); err != nil || o.Owner != "first" {
			t.Errorf("after the release %+v, %v; want the first in line", o, err)
		}
		c.Del(ctx, "{kit:lock:a}", "{kit:lock:a}:token") // as if it had lapsed
		if err := acquire("passer-by", false); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("a passer-by, while one stands in line: %v; want held", err)
		}
		if o, err := d.Owner(ctx, "a"); err != nil || o.Owner != "second" {
			t.Errorf("after a passer-by asked %+v, %v; want the next in line", o, err)
		}
	})
}

// Of a lock's last millisecond PTTL says 0, which is what it would say of no time at all: who asks then has it when it
// is over, and does not come again half a second later.
func TestAskedInTheLastMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		defer l.Close()
		const ttl = 5 * time.Second
		lapse := time.Now().Add(ttl)
		first, err := l.Acquire(t.Context(), "a", locking.Options{TTL: ttl, Fixed: true})
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		time.Sleep(time.Until(lapse) - time.Millisecond/2)
		var held *locking.HeldError
		if _, err := l.Try(t.Context(), "a", locking.Options{}); !errors.As(err, &held) || held.Until != time.Millisecond {
			t.Errorf("asked half a millisecond before its end: got %v; want that it is held for 1 ms", err)
		}
		next, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(lapse); late > 5*time.Millisecond {
			t.Errorf("had %s after it lapsed", late)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
