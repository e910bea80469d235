package redislock_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// wire is a connection over which nothing comes any more once it has subscribed to something and is mute: the other side has forgotten it.
type wire struct {
	net.Conn
	listens, mute *atomic.Bool
}

func (w wire) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("subscribe")) {
		w.listens.Store(true)
	}
	return w.Conn.Write(b)
}

func (w wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		if err != nil || !w.listens.Load() || !w.mute.Load() {
			return n, err
		}
	}
}

// TestMuteWire: a connection for calls that has gone mute is replaced while somebody waits; who waits is called again then.
func TestMuteWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, holder := withEmbedded(t)
		o := e.Options()
		dial, wires := o.Dialer, make(chan wire, 10)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			w := wire{c, new(atomic.Bool), new(atomic.Bool)}
			wires <- w
			return w, err
		}
		c := redis.NewClient(o)
		defer c.Close()
		l := redislock.New(c, redislock.Config{})
		defer l.Close()
		first := hold(t, redislock.New(holder, redislock.Config{}), lockName)
		got := make(chan *locking.Lease, 1)
		go func() {
			lease, err := l.Acquire(t.Context(), lockName, locking.Options{TTL: time.Minute, Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}()
		listening := func() (n int) { // of the connections there have been
			for range len(wires) {
				w := <-wires
				if w.listens.Load() {
					n++
					w.mute.Store(true)
				}
				wires <- w
			}
			return n
		}
		<-time.After(time.Second)
		if n := listening(); n != 1 { // and mute it is
			t.Fatalf("%d connections for calls", n)
		}
		<-time.After(6 * time.Second) // twice the silence that is checked, the pause, and some
		for n := len(wires); n > 0; n-- {
			if w := <-wires; w.listens.Load() && !w.mute.Load() {
				wires <- w
			}
		}
		if len(wires) != 1 {
			t.Errorf("%d connections for calls that speak; want a new one", len(wires))
		}
		released := time.Now()
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := <-got
		if took := time.Since(released); took > 100*time.Millisecond {
			t.Errorf("the hand-over took %s: it was not called", took)
		}
		_ = lease.Release(t.Context())
	})
}
