package redistest

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// within runs cmd with a second's time, and returns how long it took.
func within(t *testing.T, cmd func(ctx context.Context) error) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	err := cmd(ctx)
	return time.Since(start), err
}

// counted asks another network what n is, and then heals the first one.
func counted(t *testing.T, e *Embedded, n *Net, want string) {
	t.Helper()
	c := e.Client()
	defer c.Close()
	if got := c.Get(t.Context(), "n").Val(); got != want {
		t.Errorf("the server has counted to %q; want %q", got, want)
	}
	n.Heal()
}

func incr(c *redis.Client) func(ctx context.Context) error {
	return func(ctx context.Context) error { return c.Incr(ctx, "n").Err() }
}

// netOf gives f a server, and a client that has counted to 1 over n.
func netOf(t *testing.T, f func(t *testing.T, e *Embedded, n *Net, c *redis.Client)) {
	bubble(t, func(t *testing.T, e *Embedded) {
		n := new(Net)
		c := n.Client(e.Options())
		defer c.Close()
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
		f(t, e, n, c)
	})
}

func TestNetCutRequests(t *testing.T) {
	netOf(t, func(t *testing.T, e *Embedded, n *Net, c *redis.Client) {
		n.CutRequests()
		for range 2 { // on the old connection, then on a new one
			if took, err := within(t, incr(c)); err == nil || took != time.Second {
				t.Errorf("got %v after %s; want silence until the deadline", err, took)
			}
		}
		counted(t, e, n, "1")
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("after Heal: %v", err)
		}
	})
}

// What is under way back arrives although nothing can be sent any more.
func TestNetCutRequestsLetsReplies(t *testing.T) {
	netOf(t, func(t *testing.T, e *Embedded, n *Net, c *redis.Client) {
		popped := make(chan error)
		go func() { popped <- c.BLPop(t.Context(), time.Minute, "list").Err() }()
		<-time.After(time.Second) // it waits at the server
		n.CutRequests()
		other := e.Client()
		defer other.Close()
		if err := other.RPush(t.Context(), "list", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if err := <-popped; err != nil {
			t.Errorf("got %v; want the reply, which was not cut", err)
		}
		n.Heal()
	})
}

func TestNetCutReplies(t *testing.T) {
	netOf(t, func(t *testing.T, e *Embedded, n *Net, c *redis.Client) {
		n.CutReplies()
		for range 2 { // carried out on the old connection; a new one hangs
			if took, err := within(t, incr(c)); err == nil || took != time.Second {
				t.Errorf("got %v after %s; want silence until the deadline", err, took)
			}
		}
		counted(t, e, n, "2")
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("after Heal: %v", err)
		}
	})
}

func TestNetDelay(t *testing.T) {
	netOf(t, func(t *testing.T, e *Embedded, n *Net, c *redis.Client) {
		n.Delay(700 * time.Millisecond)
		if took, err := within(t, incr(c)); err != nil || took != 700*time.Millisecond {
			t.Errorf("got %v after %s; want the reply after 700ms", err, took)
		}
		n.Delay(time.Hour)
		if took, err := within(t, incr(c)); err == nil || took != time.Second {
			t.Errorf("got %v after %s; want nothing before the deadline", err, took)
		}
		counted(t, e, n, "3") // carried out at once, each time
		if took, err := within(t, incr(c)); err != nil || took != 0 {
			t.Errorf("after Heal: %v after %s", err, took)
		}
	})
}

// Replies that were split and held back come whole and in their order.
func TestNetDelayKeepsOrder(t *testing.T) {
	netOf(t, func(t *testing.T, _ *Embedded, n *Net, c *redis.Client) {
		n.Delay(time.Millisecond)
		pipe := c.Pipeline()
		const many = 3000
		for range many {
			pipe.Incr(t.Context(), "n")
		}
		cmds, err := pipe.Exec(t.Context())
		if err != nil || len(cmds) != many {
			t.Fatalf("%d replies, %v", len(cmds), err)
		}
		for i, cmd := range cmds {
			if got := cmd.(*redis.IntCmd).Val(); got != int64(i)+2 {
				t.Fatalf("reply %d is %d; want %d", i, got, i+2)
			}
		}
	})
}

// A connection that is closed ends the wait for what is held back, and one that
// is cut loses it.
func TestNetDelayEnds(t *testing.T) {
	for _, cut := range []bool{false, true} {
		bubble(t, func(t *testing.T, e *Embedded) {
			n := new(Net)
			c, err := n.Wrap(e.Options().Dialer)(t.Context(), "tcp", e.Addr())
			if err != nil {
				t.Fatal(err)
			}
			n.Delay(time.Hour)
			if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
				t.Fatal(err)
			}
			heard := make(chan error)
			go func() {
				_, err := c.Read(make([]byte, 100))
				heard <- err
			}()
			<-time.After(time.Minute) // it holds back the answer
			if cut {
				n.Cut()
				<-time.After(2 * time.Hour)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-heard; err == nil || !cut && !errors.Is(err, net.ErrClosed) {
				t.Errorf("cut %t: got %v; want an error", cut, err)
			}
		})
	}
}
