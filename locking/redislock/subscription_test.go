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

// deadConn is a connection that delivers nothing once it has subscribed and is dead: the other side has forgotten it.
type deadConn struct {
	net.Conn
	listens, dead *atomic.Bool
}

func (w deadConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("subscribe")) {
		w.listens.Store(true)
	}
	return w.Conn.Write(b)
}

func (w deadConn) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		if err != nil || !w.listens.Load() || !w.dead.Load() {
			return n, err
		}
	}
}

// A dead connection for notifications is replaced while there is a waiter, and the waiter is notified again.
func TestDeadConnectionIsReplaced(t *testing.T) {
	inABubble(t, func(t *testing.T, e *redistest.Embedded, _ *redislock.Driver, holder *locking.Locker) {
		o := e.Options()
		dial, conns := o.Dialer, make(chan deadConn, 10)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			w := deadConn{c, new(atomic.Bool), new(atomic.Bool)}
			conns <- w
			return w, err
		}
		c := redis.NewClient(o)
		defer c.Close()
		l := redislock.New(c, redislock.Config{Namespace: "kit"})
		defer l.Close()
		first := hold(t, holder, lockName)
		got := queued(t, l, lockName, 1)
		kill := func() (n int) { // the subscribed connections that are alive
			for range len(conns) {
				w := <-conns
				if w.listens.Load() && !w.dead.Swap(true) {
					n++
				}
				conns <- w
			}
			return n
		}
		time.Sleep(time.Second)
		if n := kill(); n != 1 {
			t.Fatalf("%d connections for notifications", n)
		}
		time.Sleep(6 * time.Second) // twice pingAfter, the pause, and some
		released := time.Now()
		give(t, first)
		lease := <-got
		if took := time.Since(released); took > 100*time.Millisecond {
			t.Errorf("the handover took %s: it was not notified", took)
		}
		if n := kill(); n != 1 {
			t.Errorf("%d living connections for notifications; want a new one", n)
		}
		give(t, lease)
	})
}

// hanging returns options whose first connection is made; all later ones, for notifications, hang until over is closed.
func hanging(e *redistest.Embedded, over <-chan struct{}) *redis.Options {
	o := e.Options()
	dial := o.Dialer
	var conns atomic.Int64
	o.Dialer = func(ctx context.Context, n, a string) (net.Conn, error) {
		if conns.Add(1) == 1 {
			return dial(ctx, n, a)
		}
		select { // as net.Dialer does, whose own limit never comes here
		case <-ctx.Done():
		case <-over:
		}
		return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	}
	return o
}

// A waiter returns with its context while the dial of its connection hangs, and Close does not wait for the dial. The test has many
// waiters, because only some would wait for the dial.
func TestWaitDuringADial(t *testing.T) {
	e, c := redistest.StartEmbedded(t)
	holder := redislock.New(c, redislock.Config{Namespace: "kit"})
	defer holder.Close()
	lease, over := hold(t, holder, "a"), make(chan struct{})
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			c := redis.NewClient(hanging(e, over))
			defer c.Close()
			l := redislock.New(c, redislock.Config{Namespace: "kit"})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, _ = l.Acquire(ctx, "a", locking.Options{Wait: 300 * time.Millisecond})
			l.Close()
		})
	}
	returned := make(chan struct{})
	go func() { all.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-time.After(standstill):
		t.Error("a waiter, or Close, waits for the dial")
	}
	close(over)
	<-returned
	give(t, lease)
}

// Close does not wait for a hung dial of the connection for notifications, whatever the client's read timeout is.
func TestCloseDuringADial(t *testing.T) {
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
			await(t, "it has subscribed", func() bool {
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
			case <-time.After(standstill):
				t.Error("Close waits for the dial")
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			<-closed
			give(t, first)
		})
	}
}
