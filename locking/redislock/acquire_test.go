//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

func TestTokenStateIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d, state := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), lockKeys("a")[1]
		if _, err := d.Acquire(t.Context(), request("o", time.Minute)); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(t.Context(), state).Val(); left <= 24*time.Hour-time.Minute {
			t.Errorf("the token state lasts %s after a grant; want 24h", left)
		}
		c.Del(t.Context(), state) // as an operator's hand, or an eviction
		if err := d.Release(t.Context(), "a", "o"); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(t.Context(), state).Val(); left <= 24*time.Hour-time.Minute {
			t.Errorf("the token state lasts %s after a release that had to make it anew; want 24h", left)
		}
		if n := c.Exists(t.Context(), lockKeys("a")[0]).Val(); n != 0 {
			t.Error("the lock is still there after its release")
		}
	})
}

// TestForeignKey: a string of another program holds the lock and is left alone; another type is an
// error.
func TestForeignKey(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d, keys := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), lockKeys("a")
		defer d.Close()
		acquire := func(queue bool) error {
			r := request("o", time.Minute)
			r.Queue = queue
			_, err := d.Acquire(t.Context(), r)
			return err
		}
		for _, value := range []string{"not ours", "0:closed by hand"} {
			c.Set(t.Context(), keys[0], value, 0)
			if err := acquire(false); !errors.Is(err, locking.ErrHeld) {
				t.Errorf("over %q: %v; want held", value, err)
			}
			if err := d.Release(t.Context(), "a", "o"); !errors.Is(err, locking.ErrLost) || c.Get(t.Context(), keys[0]).Val() != value {
				t.Errorf("release over %q: %v, value %q", value, err, c.Get(t.Context(), keys[0]).Val())
			}
		}
		if err := acquire(true); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("queue for a foreign string: %v; want held", err)
		}
		if left := c.PTTL(t.Context(), keys[1]).Val(); left <= 0 || left > locking.QueueTimeout {
			t.Errorf("a waiter for a foreign string leaves a state for %s; want %s at most", left, locking.QueueTimeout)
		}
		c.Del(t.Context(), keys...)
		c.SAdd(t.Context(), keys[0], "x")
		if err := acquire(false); err == nil || errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("over a set: %v; want the reply of Redis", err)
		}
	})
}

// askedOften counts acquisitions.
type askedOften struct {
	*redislock.Driver
	n atomic.Int64
}

func (d *askedOften) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	d.n.Add(1)
	return d.Driver.Acquire(ctx, r)
}

// TestLockWithoutExpiryIsNotAskedForOften: a value without an expiry does not make a waiter poll in
// a tight loop.
func TestLockWithoutExpiryIsNotAskedForOften(t *testing.T) {
	for _, line := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			_, c := redistest.StartEmbedded(t)
			c.Set(t.Context(), lockKeys("a")[0], "maintenance", 0)
			d := &askedOften{Driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit"})}
			var asked locking.Driver = d
			if !line {
				asked = struct{ locking.Driver }{d}
			}
			l := locking.New(asked, locking.Config{})
			defer l.Close()
			_, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 10 * time.Second})
			if n := d.n.Load(); !errors.Is(err, locking.ErrHeld) || n > 100 {
				t.Errorf("in a line %t: %v, %d calls in 10 s", line, err, n)
			}
		})
	}
}

// TestLateAcquire: an acquire arrives after its owner's release. Redis refuses the acquire when the
// release freed the lock, and grants it when the owner held nothing. The lock is then held in vain
// until the ttl is over, or the owner releases once more.
func TestLateAcquire(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, d *redislock.Driver, _ *locking.Locker) {
		ask := func(owner string) error {
			_, err := d.Acquire(t.Context(), request(owner, 10*time.Second))
			return err
		}
		back := func(owner string) error { return d.Release(t.Context(), "a", owner) }
		for _, step := range []struct {
			what string
			got  error
			want error // nil: none
		}{
			{"granted", ask("one"), nil},
			{"given back", back("one"), nil},
			{"a late copy of it", ask("one"), locking.ErrLost},
			{"another", errors.Join(ask("two"), back("two")), nil},
			{"a late copy, another having had it since", ask("one"), locking.ErrLost},
			{"release of what was never held", back("late"), locking.ErrLost},
			{"its acquire comes later", ask("late"), nil},
			{"the next one", ask("next"), locking.ErrHeld},
			{"released once more", errors.Join(back("late"), ask("next"), back("next")), nil},
			{"a second late copy", ask("late"), locking.ErrLost},
		} {
			if !errors.Is(step.got, step.want) {
				t.Errorf("%s: %v; want %v", step.what, step.got, step.want)
			}
		}
	})
}

// lostAnswer loses the answer of one acquisition, and calls then.
type lostAnswer struct {
	*redislock.Driver
	then func(g locking.Grant) error // nil: none is lost
}

func (d *lostAnswer) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	g, err := d.Driver.Acquire(ctx, r)
	if err == nil && d.then != nil {
		then := d.then
		d.then = nil
		return locking.Grant{}, errors.Join(locking.ErrUnreachable, then(g))
	}
	return g, err
}

// A grant is revoked before its answer arrives. The owner gets an error with this reason, or the
// next grant.
func TestRevokedBeforeTheAnswer(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, driver *redislock.Driver, _ *locking.Locker) {
		d := &lostAnswer{Driver: driver}
		revoke := func(g locking.Grant) error { return d.Revoke(t.Context(), g.Name, g.Token) }
		l := locking.New(d, locking.Config{})
		defer l.Close()
		d.then = revoke
		_, err := l.Try(t.Context(), "a", locking.Options{TTL: 24 * time.Hour})
		if !errors.Is(err, locking.ErrLost) || !strings.Contains(err.Error(), "somebody has asked this holder to end") {
			t.Errorf("got %v; want that it was revoked", err)
		}
		d.then = revoke
		again, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 30 * time.Second})
		if err != nil {
			t.Fatal("with time to wait:", err)
		}
		give(t, again)
		time.Sleep(time.Minute)
		if o, err := l.Owner(t.Context(), "a"); o.Held() || err != nil {
			t.Errorf("held by nobody: %+v, %v", o, err)
		}
	})
}

// TestAskedInTheLastMillisecond: PTTL returns 0 for a lock's last millisecond, as for a lock
// without time left. A waiter has the lock when that millisecond is over, not half a second later.
func TestAskedInTheLastMillisecond(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, _ *redislock.Driver, l *locking.Locker) {
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
			t.Errorf("half a millisecond before its end: got %v; want that it is held for 1 ms", err)
		}
		next, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(lapse); late > 5*time.Millisecond {
			t.Errorf("had %s after it lapsed", late)
		}
		give(t, next)
	})
}

// TestAfterHoldsInALine: a hand-over in a line keeps to Options.After.
func TestAfterHoldsInALine(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, _ *redislock.Driver, l *locking.Locker) {
		first := hold(t, l, "a")
		after := first.Token() + (10 * time.Minute).Microseconds()
		released := make(chan error, 1)
		time.AfterFunc(5*time.Second, func() { released <- first.Release(context.WithoutCancel(t.Context())) })
		next, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute, After: after})
		if err = errors.Join(err, <-released); err != nil {
			t.Fatal(err)
		}
		if next.Token() <= after {
			t.Errorf("after %d, granted %d", after, next.Token())
		}
		give(t, next)
	})
}
