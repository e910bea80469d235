package redislock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// network is a redistest.Net whose lost replies are those of scripts.
type network struct{ *redistest.Net }

func (n network) LoseReply() { n.LoseReplies(1, "eval") }

// store is the kit's view of a Redis that o connects to.
func store(o *redis.Options) locktest.Store {
	connect := func(tb testing.TB) (*redis.Client, network) {
		n := network{new(redistest.Net)}
		c := n.Client(o)
		tb.Cleanup(func() {
			if err := c.Close(); err != nil {
				tb.Errorf("close the client: %v", err)
			}
		})
		tb.Cleanup(n.Heal) // a dial that hangs would outlive the bubble
		return c, n
	}
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			c, n := connect(tb)
			return redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), n
		},
		Forget: func(tb testing.TB) {
			c, _ := connect(tb)
			if err := c.FlushAll(context.Background()).Err(); err != nil {
				tb.Fatal(err)
			}
		},
	}
}

func embedded(tb testing.TB) *redistest.Embedded {
	e, err := redistest.Embed()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Close)
	return e
}

func TestConformanceRedisServer(t *testing.T) {
	s := redistest.Start(t)
	flush := s.Client(t)
	locktest.Run(t, func(tb testing.TB) locktest.Store {
		if err := flush.FlushAll(tb.Context()).Err(); err != nil {
			tb.Fatal(err)
		}
		return store(redistest.ClientOptions(s.Addr()))
	})
}

func TestConformanceEmbedded(t *testing.T) {
	locktest.RunInBubble(t, func(tb testing.TB) locktest.Store {
		return store(embedded(tb).Options())
	})
}
