//go:build unix

package redislock_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// several are the options of the tests below: two permits, a reader, a writer.
func several(i int) (name string, o locking.Options) {
	o = locking.Options{TTL: 30 * time.Second, Wait: time.Minute}
	switch i % 4 {
	case 0:
		o.Mode = locking.Write
	case 1:
		o.Mode = locking.Read
	default:
		o.Permits = 2
		return "permits", o
	}
	return "readers", o
}

// TestSharesDoNotGrow acquires ten thousand times, and wants no more keys, fields and goroutines than after a few.
func TestSharesDoNotGrow(t *testing.T) {
	t.Parallel()
	const contenders, rounds = 8, 1250
	c := redistest.Start(t).Client(t)
	l := redislock.New(c, redislock.Config{Namespace: "kit"})
	round := func(n int) {
		var wg sync.WaitGroup
		for i := range contenders {
			wg.Go(func() {
				name, o := several(i)
				for range n {
					lease, err := l.Acquire(t.Context(), name, o)
					if err == nil {
						err = lease.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	round(20)
	keys, bytes := stored(t, c)
	goroutines := runtime.NumGoroutine()
	round(rounds)
	if k, b := stored(t, c); k > keys || b > bytes+bytes/10 {
		t.Errorf("%d keys of %d bytes after %d acquisitions; %d of %d after a few", k, b, contenders*rounds, keys, bytes)
	}
	// Other tests may run at the same time: only a number that grows with the acquisitions is a
	// leak.
	if n := runtime.NumGoroutine(); n > goroutines+contenders*rounds/20 {
		t.Errorf("%d goroutines after %d acquisitions, %d after a few", n, contenders*rounds, goroutines)
	}
	l.Close()
}

// stored counts the keys, all with an expiry, and their size.
func stored(t *testing.T, c *redis.Client) (keys int, bytes int64) {
	t.Helper()
	all, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range all {
		if left := c.PTTL(t.Context(), key).Val(); left <= 0 {
			t.Errorf("key %s does not expire", key)
		}
		bytes += c.MemoryUsage(t.Context(), key).Val()
	}
	return len(all), bytes
}

// TestLapsedHoldersAreDropped: holders and waiters that are gone leave nothing behind but the token state.
func TestLapsedHoldersAreDropped(t *testing.T) {
	inABubble(t, func(t *testing.T, e *redistest.Embedded, d *redislock.Driver, l *locking.Locker) {
		o := e.Options()
		c := redis.NewClient(o)
		defer c.Close()
		readers := d.Share(locking.Share{Mode: locking.Read})
		for i := range 50 {
			if _, err := readers.Acquire(t.Context(), request(fmt.Sprint("reader ", i), time.Second)); err != nil {
				t.Fatal(err)
			}
			<-time.After(300 * time.Millisecond)
		}
		if n := c.HLen(t.Context(), lockKeys("a")[0]).Val(); n > 7 { // the holders of the last second, one more, and the kind
			t.Errorf("%d fields, of readers that lapsed after a second", n)
		}
		writers := d.Share(locking.Share{Mode: locking.Write})
		r := request("writer", time.Second)
		r.Queue = true
		if _, err := writers.Acquire(t.Context(), r); !errors.Is(err, locking.ErrHeld) {
			t.Fatal(err)
		}
		<-time.After(locking.QueueTimeout + time.Second)
		for i, key := range lockKeys("a") {
			if n := c.Exists(t.Context(), key).Val(); n != 0 && i != 1 {
				t.Errorf("key %s is left", key)
			}
		}
		// The queue is empty, so the name is free for another kind.
		lease, err := l.Acquire(t.Context(), "a", locking.Options{})
		if err != nil {
			t.Fatal(err)
		}
		give(t, lease)
	})
}

// TestSharesOnAFullServer: held permits are renewed and released though Redis takes no more writes;
// new grants are refused.
func TestSharesOnAFullServer(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t).Client(t)
	l := redislock.New(c, redislock.Config{})
	defer l.Close()
	o := locking.Options{TTL: 30 * time.Second, Permits: 3}
	first, err := l.Acquire(t.Context(), "a", o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Acquire(t.Context(), "a", o)
	if err != nil {
		t.Fatal(err)
	}
	c.ConfigSet(t.Context(), "maxmemory", "1")
	if err := first.Extend(t.Context()); err != nil {
		t.Errorf("renewal: %v", err)
	}
	if _, err := l.Acquire(t.Context(), "a", o); err == nil || errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("a new grant: %v; want Redis' refusal", err)
	}
	give(t, first)
	give(t, second)
	c.ConfigSet(t.Context(), "maxmemory", "0")
	if all, err := l.Holders(t.Context(), "a"); len(all) > 0 || err != nil {
		t.Errorf("after the releases %+v, %v", all, err)
	}
}
