//go:build unix

package redislock_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
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

// TestMuteWire: a connection for calls that has gone mute is replaced while somebody waits; the waiter is called again then.
func TestMuteWire(t *testing.T) {
	inABubble(t, func(t *testing.T, e *redistest.Embedded, _ *redislock.Driver, holder *locking.Locker) {
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
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		defer l.Close()
		first := hold(t, holder, lockName)
		got := inLine(t, l, lockName, 1)
		mute := func() (n int) { // those that listen and speak
			for range len(wires) {
				w := <-wires
				if w.listens.Load() && !w.mute.Swap(true) {
					n++
				}
				wires <- w
			}
			return n
		}
		time.Sleep(time.Second)
		if n := mute(); n != 1 {
			t.Fatalf("%d connections for calls", n)
		}
		time.Sleep(6 * time.Second) // twice the silence that is checked, the pause, and some
		released := time.Now()
		give(t, first)
		lease := <-got
		if took := time.Since(released); took > 100*time.Millisecond {
			t.Errorf("the hand-over took %s: it was not called", took)
		}
		if n := mute(); n != 1 {
			t.Errorf("%d connections for calls that speak; want a new one", n)
		}
		give(t, lease)
	})
}

// hanging returns options of which the first connection is made, and all later ones, for calls, hang for go-redis' five seconds.
func hanging(e *redistest.Embedded) *redis.Options {
	o := e.Options()
	o.DialTimeout = 5 * time.Second
	dial := o.Dialer
	var conns atomic.Int64
	o.Dialer = func(ctx context.Context, n, a string) (net.Conn, error) {
		if conns.Add(1) == 1 {
			return dial(ctx, n, a)
		}
		select { // as net.Dialer{Timeout: o.DialTimeout} in redis.NewDialer
		case <-ctx.Done():
		case <-time.After(o.DialTimeout):
		}
		return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	}
	return o
}

// TestWaitWhileAWireIsDialled: a waiter whose connection for calls hangs while it is dialled returns with its context, and Close does not
// wait for it either. Of many some would wait for the dial.
func TestWaitWhileAWireIsDialled(t *testing.T) {
	e, c := redistest.StartEmbedded(t)
	holder := redislock.New(c, redislock.Config{Namespace: "kit"})
	defer holder.Close()
	lease := hold(t, holder, "a")
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			c := redis.NewClient(hanging(e))
			defer c.Close()
			l := redislock.New(c, redislock.Config{Namespace: "kit"})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			begun := time.Now()
			_, _ = l.Acquire(ctx, "a", locking.Options{Wait: 300 * time.Millisecond})
			waited := time.Since(begun)
			l.Close()
			if closed := time.Since(begun) - waited; waited > 2100*time.Millisecond || closed > 2500*time.Millisecond {
				t.Errorf("a wait of 300ms, in a context of 500ms, took %s, and Close %s", waited, closed)
			}
		})
	}
	all.Wait()
	give(t, lease)
}

// TestCloseWhileAWireIsMade has Redis hang while the connection for calls is made anew, which no read timeout of the client's ends
// soon, or ever. Close does not wait for it.
func TestCloseWhileAWireIsMade(t *testing.T) {
	for name, readTimeout := range map[string]time.Duration{"no read timeout": -1, "the default": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			admin := s.Client(t)
			holder := redislock.New(admin, redislock.Config{})
			defer holder.Close()
			first := hold(t, holder, lockName)
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
			await(t, 5*time.Second, "it listens", func() bool {
				n, err := admin.ClientKillByFilter(ctx, "type", "pubsub").Result()
				return err == nil && n == 1
			})
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // the pause before the next connection, and some
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
			give(t, first)
		})
	}
}
