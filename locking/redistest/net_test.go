//go:build unix

package redistest

import (
	"context"
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

// counted reads the count n over another network, and then heals the first one.
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

func TestNetCut(t *testing.T) {
	for _, cut := range []func(n *Net){(*Net).Cut, (*Net).CutRequests} {
		netOf(t, func(t *testing.T, e *Embedded, n *Net, c *redis.Client) {
			cut(n)
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

func TestNetLoseReplies(t *testing.T) {
	netOf(t, func(t *testing.T, _ *Embedded, n *Net, c *redis.Client) {
		n.LoseReplies(1, "INCR")
		if err := c.Ping(t.Context()).Err(); err != nil { // another request is left alone
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Incr(ctx, "n").Err(); err == nil {
			t.Error("the reply arrived")
		}
		if got := c.Get(t.Context(), "n").Val(); got != "2" || n.Losing() != 0 {
			t.Errorf("n is %q, still losing %d; want the request carried out once", got, n.Losing())
		}
	})
}
