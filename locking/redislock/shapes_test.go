//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// shape is a real Redis in one of its forms.
type shape struct {
	servers []*redistest.Server // masters, and replicas if there are any
	connect func(dial redistest.Dialer) redis.UniversalClient
}

func standalone(tb testing.TB) shape {
	s := redistest.Start(tb)
	return shape{[]*redistest.Server{s}, func(dial redistest.Dialer) redis.UniversalClient {
		o := redistest.ClientOptions(s.Addr())
		o.Dialer = dial
		return redis.NewClient(o)
	}}
}

func sentinels(s *redistest.Sentinels) shape {
	return shape{s.Servers(), func(dial redistest.Dialer) redis.UniversalClient {
		o := s.Options()
		o.Dialer = dial
		return redis.NewFailoverClient(o)
	}}
}

func cluster(c *redistest.Cluster) shape {
	return shape{c.Servers(), func(dial redistest.Dialer) redis.UniversalClient {
		o := c.Options()
		o.Dialer = dial
		return redis.NewClusterClient(o)
	}}
}

// client returns a new client over a network of its own, closed when the test ends.
func (s shape) client(tb testing.TB) (redis.UniversalClient, network) {
	n := network{new(redistest.Net)}
	c := s.connect(n.Wrap(redis.NewDialer(redistest.ClientOptions(""))))
	tb.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close a client: %v", err)
		}
	})
	tb.Cleanup(n.Heal)
	return c, n
}

// masters calls f for each server that is a master now.
func (s shape) masters(tb testing.TB, f func(c *redis.Client)) {
	tb.Helper()
	for _, server := range s.servers {
		c := redis.NewClient(redistest.ClientOptions(server.Addr()))
		role, err := c.Do(context.Background(), "role").Slice()
		if err == nil && role[0] == "master" {
			f(c)
		}
		if err := c.Close(); err != nil {
			tb.Errorf("close a client: %v", err)
		}
	}
}

// empty makes the shape forget all it knows.
func (s shape) empty(tb testing.TB) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		if err := c.FlushAll(context.Background()).Err(); err != nil {
			tb.Fatal(err)
		}
	})
}

// others lists the keys that are not the token state of a lock.
func (s shape) others(tb testing.TB) (keys []string) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		for _, key := range c.Keys(context.Background(), "*").Val() {
			if !strings.HasSuffix(key, ":token") {
				keys = append(keys, key)
			}
		}
	})
	return keys
}

func (s shape) store() locktest.Store {
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			c, n := s.client(tb)
			return redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), n
		},
		Forget: s.empty,
	}
}

// conforms runs the kit, each case against the emptied shape.
func conforms(t *testing.T, s shape) {
	locktest.Run(t, func(tb testing.TB) locktest.Store {
		s.empty(tb)
		return s.store()
	})
}

func TestConformanceSentinel(t *testing.T) {
	t.Parallel()
	conforms(t, sentinels(redistest.StartSentinels(t)))
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	conforms(t, cluster(redistest.StartCluster(t)))
}

// await asks again and again until the answer is yes, and fails after a time.
func await(tb testing.TB, within time.Duration, what string, yes func() bool) time.Duration {
	tb.Helper()
	begun := time.Now()
	for !yes() {
		if time.Since(begun) > within {
			tb.Fatalf("not within %s: %s", within, what)
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(begun)
}

// TestConformanceConfirmed is the kit over a master with two replicas, of which one has to have each grant.
func TestConformanceConfirmed(t *testing.T) {
	t.Parallel()
	master, _ := redistest.StartReplicas(t, 2)
	s := shape{[]*redistest.Server{master}, func(dial redistest.Dialer) redis.UniversalClient {
		o := redistest.ClientOptions(master.Addr())
		o.Dialer = dial
		return redis.NewClient(o)
	}}
	locktest.Run(t, func(tb testing.TB) locktest.Store {
		s.empty(tb)
		store := s.store()
		store.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
			c, n := s.client(tb)
			return redislock.NewDriver(c, redislock.Config{Namespace: "kit", Confirm: 1}), n
		}
		return store
	})
}
