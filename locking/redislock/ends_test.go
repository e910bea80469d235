package redislock_test

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// race
func TestReleaseAllBesideAcquire(t *testing.T) {
	_, c := withEmbedded(t)
	l := redislock.New(c, redislock.Config{Namespace: "kit"})
	defer l.Close()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = l.ReleaseAll(context.Background())
			}
		}
	})
	for range 300 {
		if lease, err := l.Acquire(t.Context(), "a", locking.Options{}); err == nil {
			_ = lease.Release(t.Context())
		}
	}
	close(stop)
	wg.Wait()
}

// goroutines in an outage
type unreachable struct{ locking.Driver }

func (unreachable) Acquire(context.Context, locking.Request) (locking.Grant, error) {
	return locking.Grant{}, locking.ErrUnreachable
}
func (unreachable) Release(context.Context, string, string) error { return locking.ErrUnreachable }

func TestBackgroundReleasesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locking.New(unreachable{}, locking.Config{})
		before := runtime.NumGoroutine()
		for range 5000 { // a cron that tries every second, for less than an hour and a half
			_, _ = l.Try(t.Context(), "a", locking.Options{TTL: 2 * time.Hour})
			time.Sleep(time.Second)
		}
		if n := runtime.NumGoroutine() - before; n > 100 {
			t.Errorf("%d goroutines", n)
		}
		l.Close()
	})
}

// the subscription's connection hangs
func TestCloseWhileTheCallsAreDialled(t *testing.T) {
	func() {
		e, plain := withEmbedded(t)
		o := e.Options()
		o.DialTimeout = 5 * time.Second // go-redis's default
		dial := o.Dialer
		var conns atomic.Int64
		o.Dialer = func(ctx context.Context, n, a string) (net.Conn, error) {
			if conns.Add(1) > 1 { // new connections get no answer
				select { // as net.Dialer{Timeout: o.DialTimeout} in redis.NewDialer
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
				return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
			}
			return dial(ctx, n, a)
		}
		c := redis.NewClient(o)
		defer c.Close()
		pl := redislock.New(plain, redislock.Config{Namespace: "kit"})
		h, err := pl.Acquire(t.Context(), "a", locking.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		began := time.Now()
		_, err = l.Acquire(ctx, "a", locking.Options{Wait: 300 * time.Millisecond})
		cancel()
		t.Logf("%v: %v", time.Since(began), err)
		if d := time.Since(began); d > 2100*time.Millisecond {
			t.Errorf("Wait 300ms, ctx 500ms, returned after %v", d)
		}
		began = time.Now()
		l.Close()
		t.Logf("Close took %v", time.Since(began))
		_ = h.Release(t.Context())
		pl.Close()
	}()
}

// Close beside an acquisition that gives up
func TestCloseBesideGivingUp(t *testing.T) {
	for range 200 {
		l := locking.New(unreachable{}, locking.Config{})
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
			defer cancel()
			_, _ = l.Acquire(ctx, "a", locking.Options{Wait: time.Second})
		})
		wg.Go(func() { time.Sleep(2 * time.Millisecond); l.Close() })
		wg.Wait()
	}
}

// of 60 first waiters whose subscription's dial hangs, some wait for the dial, not for their ctx.
func TestWaitWhileTheCallsAreDialled(t *testing.T) {
	e, plain := withEmbedded(t)
	h, err := redislock.New(plain, redislock.Config{Namespace: "kit"}).Acquire(t.Context(), "a", locking.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var late atomic.Int64
	for range 60 {
		wg.Go(func() {
			o := e.Options()
			dial := o.Dialer
			var conns atomic.Int64
			o.Dialer = func(ctx context.Context, n, a string) (net.Conn, error) {
				if conns.Add(1) > 1 {
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Second):
					}
					return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
				}
				return dial(ctx, n, a)
			}
			c := redis.NewClient(o)
			l := redislock.New(c, redislock.Config{Namespace: "kit"})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, _ = l.Acquire(ctx, "a", locking.Options{Wait: 300 * time.Millisecond})
			if d := time.Since(began); d > 2*time.Second {
				late.Add(1)
				t.Logf("Wait 300ms, ctx 500ms, back after %v", d)
			}
			_ = c.Close()
		})
	}
	wg.Wait()
	_ = h.Release(t.Context())
	if late.Load() > 0 {
		t.Errorf("%d of 60 late", late.Load())
	}
}
