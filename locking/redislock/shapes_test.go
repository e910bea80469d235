//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

var (
	historySeed  = flag.Uint64("histories.seed", 1, "the first of the histories that TestHistories plays")
	historyCount = flag.Int("histories", 100, "how many histories TestHistories plays")
)

const (
	lockName = "order:42"

	// standstill ends a wait on a machine that does nothing any more. How fast a machine is fails no test.
	standstill = 2 * time.Minute
)

// shape is a Redis in one of its forms.
type shape struct {
	masters func(tb testing.TB, f func(c *redis.Client)) // calls f for each server that is a master now
	connect func(dial redistest.Dialer) redis.UniversalClient
	dial    redistest.Dialer // its clients dial with it
	confirm int              // see redislock.Config
}

var overTCP = redis.NewDialer(redistest.ClientOptions(""))

func standalone(servers ...*redistest.Server) shape {
	return shape{mastersOf(servers), func(dial redistest.Dialer) redis.UniversalClient {
		o := redistest.ClientOptions(servers[0].Addr())
		o.Dialer = dial
		return redis.NewClient(o)
	}, overTCP, 0}
}

func sentinels(s *redistest.Sentinels) shape {
	return shape{mastersOf(s.Servers()), func(dial redistest.Dialer) redis.UniversalClient {
		o := s.Options()
		o.Dialer = dial
		return redis.NewFailoverClient(o)
	}, overTCP, 0}
}

func cluster(c *redistest.Cluster) shape {
	return shape{mastersOf(c.Servers()), func(dial redistest.Dialer) redis.UniversalClient {
		o := c.Options()
		o.Dialer = dial
		return redis.NewClusterClient(o)
	}, overTCP, 0}
}

func mastersOf(servers []*redistest.Server) func(tb testing.TB, f func(c *redis.Client)) {
	return func(tb testing.TB, f func(c *redis.Client)) {
		tb.Helper()
		for _, server := range servers {
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
}

// network is a redistest.Net that loses the replies of scripts only.
type network struct{ *redistest.Net }

func (n network) LoseReply() { n.LoseReplies(1, "eval") }

// client returns a new client over a network of its own, closed when the test ends.
func (s shape) client(tb testing.TB) (redis.UniversalClient, network) {
	n := network{new(redistest.Net)}
	c := s.connect(n.Wrap(s.dial))
	tb.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close a client: %v", err)
		}
	})
	tb.Cleanup(n.Heal) // a dial that hangs would outlive the test
	return c, n
}

// locker returns a locker with a client of its own, closed when the test ends.
func (s shape) locker(tb testing.TB, cfg redislock.Config) *locking.Locker {
	c, _ := s.client(tb)
	cfg.Namespace, cfg.Confirm = "kit", s.confirm
	l := redislock.New(c, cfg)
	tb.Cleanup(l.Close)
	return l
}

// delete removes the keys that begin so.
func (s shape) delete(tb testing.TB, prefix string) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		for _, key := range c.Keys(context.Background(), prefix+"*").Val() {
			if err := c.Del(context.Background(), key).Err(); err != nil {
				tb.Fatal(err)
			}
		}
	})
}

var namespaces atomic.Int64

// store is the kit's view of a shape: a namespace of its own.
func (s shape) store() locktest.Store {
	var sent counter
	namespace := fmt.Sprint("kit", namespaces.Add(1))
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			c, n := s.client(tb)
			c.AddHook(&sent)
			return redislock.NewDriver(c, redislock.Config{Namespace: namespace, Confirm: s.confirm}), n
		},
		Forget:   func(tb testing.TB) { s.delete(tb, "{"+namespace+":") },
		Commands: sent.n.Load,
	}
}

// conforms runs the kit, each case in a namespace of its own.
func conforms(t *testing.T, s shape) {
	locktest.RunParallel(t, func(testing.TB) locktest.Store { return s.store() })
}

func TestConformanceRedisServer(t *testing.T) {
	t.Parallel()
	conforms(t, standalone(redistest.Start(t)))
}

// TestConformanceConfirmed is the kit over a master with two replicas, of which one has to have each grant.
func TestConformanceConfirmed(t *testing.T) {
	t.Parallel()
	master, _ := redistest.StartReplicas(t, 2)
	s := standalone(master)
	s.confirm = 1
	conforms(t, s)
}

func TestConformanceEmbedded(t *testing.T) {
	locktest.RunInBubble(t, inBubble)
}

func TestHistories(t *testing.T) {
	locktest.Histories(t, locktest.HistoryConfig{Seed: *historySeed, Count: *historyCount, Bubble: true}, inBubble)
}

// inBubble is a store on an embedded server, in a bubble.
func inBubble(tb testing.TB) locktest.Store {
	e, c := redistest.StartEmbedded(tb)
	tb.Cleanup(func() { // go-redis dials in the background, and does not stop when its client is closed
		<-time.After(2 * time.Second)
		synctest.Wait()
	})
	return shape{
		masters: func(_ testing.TB, f func(c *redis.Client)) { f(c) },
		connect: func(dial redistest.Dialer) redis.UniversalClient {
			o := e.Options()
			o.Dialer = dial
			return redis.NewClient(o)
		},
		dial: e.Options().Dialer,
	}.store()
}

// onBoth runs f against a redis-server and an embedded server.
func onBoth(t *testing.T, f func(t *testing.T, c *redis.Client)) {
	t.Run("redis-server", func(t *testing.T) { f(t, redistest.Start(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		_, c := redistest.StartEmbedded(t)
		f(t, c)
	})
}

// inABubble runs f in a bubble, with an embedded server, a driver and a locker.
func inABubble(t *testing.T, f func(t *testing.T, e *redistest.Embedded, d *redislock.Driver, l *locking.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		e, c := redistest.StartEmbedded(t)
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		l := locking.New(d, locking.Config{})
		defer l.Close()
		f(t, e, d, l)
	})
}

// request is for lock a.
func request(owner string, ttl time.Duration) locking.Request {
	return locking.Request{Name: "a", Owner: owner, TTL: ttl}
}

// lockKeys spells the keys of a lock in namespace kit as doc.go does: lock, state, line and waiters.
func lockKeys(name string) []string {
	lock := "{kit:lock:" + name + "}"
	return []string{lock, lock + ":token", lock + ":line", lock + ":waiters"}
}

// hold takes the lock called name, for as long as the test wants.
func hold(tb testing.TB, l *locking.Locker, name string) *locking.Lease {
	tb.Helper()
	lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: 30 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(lease.Close)
	return lease
}

func give(tb testing.TB, lease *locking.Lease) {
	tb.Helper()
	if lease == nil {
		tb.Fatal("there is no lease")
	}
	if err := lease.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// await calls yes again and again until it returns true, and fails after a time.
func await(tb testing.TB, what string, yes func() bool) time.Duration {
	tb.Helper()
	begun := time.Now()
	for !yes() {
		if time.Since(begun) > standstill {
			tb.Fatalf("not within %s: %s", standstill, what)
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(begun)
}

// bound is a context for one failover.
func bound(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), standstill)
	tb.Cleanup(cancel)
	return ctx
}

// before is a hook that does something before each script.
type before func()

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			b()
		}
		return next(ctx, cmd)
	}
}
