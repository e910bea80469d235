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

func withEmbedded(t *testing.T) (*redistest.Embedded, *redis.Client) {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := e.Client()
	t.Cleanup(func() { _ = c.Close() })
	return e, c
}

// Options.After is forgotten by a hand-over.
func TestAfterHoldsInALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		defer l.Close()
		first, _ := l.Acquire(t.Context(), "a", locking.Options{})
		after := first.Token() + 10*60*1e6
		got := make(chan *locking.Lease)
		go func() {
			w, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute, After: after})
			if err != nil {
				t.Error(err)
			}
			got <- w
		}()
		time.Sleep(5 * time.Second)
		_ = first.Release(t.Context())
		w := <-got
		defer func() { _ = w.Release(t.Context()) }()
		if w.Token() <= after {
			t.Errorf("After %d, granted %d", after, w.Token())
		}
	})
}

// Do and a lost lease.
func TestDoSaysThatTheLockWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		defer l.Close()
		err := l.Do(t.Context(), "a", locking.Options{TTL: 3 * time.Second, Fixed: true}, func(ctx context.Context, lease *locking.Lease) error {
			time.Sleep(2500 * time.Millisecond)
			t.Log("lost:", lease.Lost(), context.Cause(ctx))
			return nil
		})
		if !errors.Is(err, locking.ErrLost) {
			t.Errorf("lost before f returned; Do: %v", err)
		}
		err = l.Do(t.Context(), "a", locking.Options{TTL: 3 * time.Second, Delay: time.Minute, Fixed: true}, func(ctx context.Context, lease *locking.Lease) error {
			time.Sleep(45 * time.Second)
			return nil
		})
		if !errors.Is(err, locking.ErrLost) {
			t.Errorf("lost 43 s before f returned; Do: %v", err)
		}
	})
}

// OOM
func TestReleaseOnAFullServer(t *testing.T) {
	c := redistest.Start(t).Client(t)
	l := redislock.New(c, redislock.Config{Namespace: "kit"})
	defer l.Close()
	lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c.ConfigSet(t.Context(), "maxmemory", "1")
	t.Log("revoke:", l.Revoke(t.Context(), "a", lease.Token()))
	t.Log("release:", lease.Release(t.Context()))
	c.ConfigSet(t.Context(), "maxmemory", "0")
	o, err := l.Owner(t.Context(), "a")
	if o.Held() {
		t.Errorf("after the release still %+v %v", o, err)
	}
}

// a copy of acquire that comes after the release
func TestLateCopyAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		ctx := t.Context()
		rq := locking.Request{Name: "a", Owner: "one", TTL: 24 * time.Hour, Delay: time.Hour}
		if _, err := d.Acquire(ctx, rq); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(ctx, "a", "one"); err != nil {
			t.Fatal(err)
		}
		rq2 := rq
		rq2.Owner = "two"
		_, _ = d.Acquire(ctx, rq2)
		_ = d.Release(ctx, "a", "two")
		if _, err := d.Acquire(ctx, rq); err == nil {
			t.Error("the late copy of an acquire that was granted and released is granted again, another having had it since")
		}
	})
}

// lost reply, then revoked, then asked again.
type toldNothing struct {
	*redislock.Driver
	after func(g locking.Grant)
	done  bool
}

func (d *toldNothing) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	g, err := d.Driver.Acquire(ctx, r)
	if err == nil && !d.done {
		d.done = true
		d.after(g)
		return locking.Grant{}, locking.ErrUnreachable
	}
	return g, err
}

func TestRevokedBeforeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		d := &toldNothing{Driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit"})}
		d.after = func(g locking.Grant) { t.Log("revoke", d.Revoke(t.Context(), g.Name, g.Token)) }
		l := locking.New(d, locking.Config{})
		_, err := l.Try(t.Context(), "a", locking.Options{TTL: 24 * time.Hour})
		if !errors.Is(err, locking.ErrLost) || !strings.Contains(err.Error(), "somebody has asked this holder to end") {
			t.Errorf("got %v; want that it was revoked", err)
		}
		d.done = false
		again, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 30 * time.Second})
		if err != nil {
			t.Fatal("with time to wait:", err)
		}
		_ = again.Release(t.Context())
		l.Close()
		time.Sleep(time.Minute)
		if o, _ := l.Owner(t.Context(), "a"); o.Held() {
			t.Errorf("kept by nobody: %+v", o)
		}
	})
}

// a value without expiry makes who waits ask in a tight loop.
func TestLockWithoutExpiryIsNotAskedForOften(t *testing.T) {
	for _, wait := range []string{"line", "poll"} {
		t.Run(wait, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := withEmbedded(t)
				var n atomic.Int64
				d := &askedOften{Driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), n: &n}
				c.Set(t.Context(), "{kit:lock:a}", "maintenance", 0)
				var drv locking.Driver = d
				if wait == "poll" {
					drv = struct{ locking.Driver }{d}
				}
				l := locking.New(drv, locking.Config{})
				_, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 10 * time.Second})
				t.Log(err)
				l.Close()
				if n.Load() > 100 {
					t.Errorf("%d calls in 10 s", n.Load())
				}
			})
		})
	}
}

type askedOften struct {
	*redislock.Driver
	n *atomic.Int64
}

func (d *askedOften) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	d.n.Add(1)
	return d.Driver.Acquire(ctx, r)
}

// foreign value "0:x"
func TestTokenZeroIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		c.Set(t.Context(), "{kit:lock:a}", "0:closed by hand", time.Hour)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		lease, err := l.Try(t.Context(), "a", locking.Options{})
		if err == nil {
			t.Error("taken", lease)
			_ = lease.Release(t.Context())
		}
		l.Close()
	})
}

// Revoke: others have the lock while the holder has only just been told.
func TestRevokedHolderEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		var ended, got time.Time
		done := make(chan struct{})
		first := make(chan locking.Token)
		go func() {
			defer close(done)
			_ = l.Do(t.Context(), "a", locking.Options{}, func(ctx context.Context, le *locking.Lease) error {
				first <- le.Token()
				<-ctx.Done()
				time.Sleep(300 * time.Millisecond) // a tidy end: finish the write under way
				ended = time.Now()
				return nil
			})
		}()
		tok := <-first
		if err := l.Revoke(t.Context(), "a", tok); err != nil {
			t.Fatal(err)
		}
		next, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		got = time.Now()
		<-done
		if got.Before(ended) {
			t.Errorf("the next had the lock %v before the first's function ended, with ~10 s of its lease left", ended.Sub(got))
		}
		_ = next.Release(t.Context())
		l.Close()
	})
}

// One foreign key takes the whole list away.
func TestListOverAForeignKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		x, _ := l.Acquire(t.Context(), "good", locking.Options{})
		c.Set(t.Context(), "{kit:lock:bad}", "1:x", 0)
		c.Set(t.Context(), "{kit:lock:bad}:line", "x", 0)
		locks, _, err := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}).List(t.Context(), 10)
		if err != nil {
			t.Errorf("%v %v", locks, err)
		}
		_ = x.Release(t.Context())
		l.Close()
	})
}
