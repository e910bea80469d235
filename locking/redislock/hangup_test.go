//go:build unix

package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestCloseWhileAWireIsMade has Redis hang while the connection for calls is made anew, which no read timeout of the client's ends
// soon, or ever. Close does not wait for it.
func TestCloseWhileAWireIsMade(t *testing.T) {
	for name, readTimeout := range map[string]time.Duration{"no read timeout": -1, "the default": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			first := hold(t, redislock.New(s.Client(t), redislock.Config{}), lockName)
			o := redistest.ClientOptions(s.Addr())
			o.ReadTimeout = readTimeout
			c := redis.NewClient(o)
			defer func() { _ = c.Close() }()
			l := redislock.New(c, redislock.Config{})
			ctx, giveUp := context.WithCancel(t.Context())
			gaveUp := make(chan struct{})
			go func() {
				defer close(gaveUp)
				_, _ = l.Acquire(ctx, lockName, locking.Options{Wait: time.Minute})
			}()
			<-time.After(500 * time.Millisecond)
			if n, err := s.Client(t).ClientKillByFilter(ctx, "type", "pubsub").Result(); err != nil || n != 1 {
				t.Fatalf("%d connections for calls, %v", n, err)
			}
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // the pause, and some
			giveUp()
			<-gaveUp
			closed := make(chan struct{})
			go func() { l.Close(); close(closed) }()
			select {
			case <-closed:
			case <-time.After(2500 * time.Millisecond):
				t.Error("Close takes longer than two calls")
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			<-closed
			_ = first.Release(t.Context())
		})
	}
}
