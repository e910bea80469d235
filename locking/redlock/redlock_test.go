package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/locking/redlock"
)

// network is one client's network to all masters, which fails as one.
type network []*redistest.Net

func (n network) each(f func(*redistest.Net)) {
	for _, net := range n {
		f(net)
	}
}

func (n network) Cut()         { n.each((*redistest.Net).Cut) }
func (n network) CutRequests() { n.each((*redistest.Net).CutRequests) }
func (n network) CutReplies()  { n.each((*redistest.Net).CutReplies) }
func (n network) Heal()        { n.each((*redistest.Net).Heal) }
func (n network) LoseReply()   { n.each(func(net *redistest.Net) { net.LoseReplies(1, "eval") }) }

func (n network) Delay(d time.Duration) { n.each(func(net *redistest.Net) { net.Delay(d) }) }

// link is a network whose next request is the test's own: the driver's earlier calls have ended
// first.
type link struct {
	network
	driver *redlock.Driver
}

func (l link) LoseReply() {
	l.driver.Wait()
	l.network.LoseReply()
}

// cluster are masters as clients see them.
type cluster struct {
	options []*redis.Options
	cfg     redlock.Config
}

// clients connects to all masters over a network of its own.
func (c cluster) clients(tb testing.TB) ([]redis.UniversalClient, network) {
	var clients []redis.UniversalClient
	var nets network
	for _, o := range c.options {
		n := new(redistest.Net)
		client := n.Client(o)
		tb.Cleanup(func() { _ = client.Close() })
		clients, nets = append(clients, client), append(nets, n)
	}
	tb.Cleanup(nets.Heal) // a dial that hangs would outlive a bubble
	return clients, nets
}

func (c cluster) driver(tb testing.TB) (*redlock.Driver, network) {
	clients, nets := c.clients(tb)
	d, err := redlock.NewDriver(clients, c.cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Wait) // before the clients are closed
	return d, nets
}

func (c cluster) bootstrap(tb testing.TB) {
	tb.Helper()
	clients, _ := c.clients(tb)
	if err := redlock.Bootstrap(context.Background(), clients, c.cfg); err != nil {
		tb.Fatal(err)
	}
}

// first makes empty masters vote. On a busy machine a master may give no answer in time, and the
// others would then have to wait for a ttl; first empties all and tries again.
func (c cluster) first(tb testing.TB) {
	tb.Helper()
	clients, _ := c.clients(tb)
	for begun := time.Now(); ; {
		c.empty(tb)
		err := redlock.Bootstrap(context.Background(), clients, c.cfg)
		if err == nil {
			return
		}
		if !errors.Is(err, locking.ErrUnreachable) || time.Since(begun) > 20*time.Second {
			tb.Fatal(err)
		}
	}
}

// empty removes all keys of the namespace, as FLUSHALL removes all keys.
func (c cluster) empty(tb testing.TB) {
	clients, _ := c.clients(tb)
	for _, client := range clients {
		keys, err := client.Keys(context.Background(), "{"+c.cfg.Namespace+":redlock*").Result()
		if err == nil && len(keys) > 0 {
			err = client.Del(context.Background(), keys...).Err()
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// forget empties all masters and does the operator's part of the recovery.
func (c cluster) forget(tb testing.TB) {
	c.empty(tb)
	<-time.After(time.Millisecond) // only the clock is left, in microseconds
	c.first(tb)
}

func (c cluster) store() locktest.Store {
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			d, n := c.driver(tb)
			return d, link{n, d}
		},
		Forget: c.forget,
		Quorum: true,
	}
}

// servers starts n redis-servers that vote. MasterTimeout is for a busy machine.
func servers(tb testing.TB, n int) (cluster, []*redistest.Server) {
	c := cluster{cfg: redlock.Config{Namespace: "kit", MasterTimeout: 200 * time.Millisecond}}
	all := redistest.StartMasters(tb, n)
	for _, s := range all {
		c.options = append(c.options, redistest.ClientOptions(s.Addr()))
	}
	c.first(tb)
	return c, all
}

// embedded starts n embedded servers that do not vote yet.
func embedded(tb testing.TB, n int) (cluster, []*redistest.Embedded) {
	c := cluster{cfg: redlock.Config{Namespace: "kit"}}
	var all []*redistest.Embedded
	for i := range n {
		e, err := redistest.Embed()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(e.Close)
		o := e.Options()
		o.Addr = fmt.Sprintf("10.0.0.%d:6379", i+1) // a name only
		all = append(all, e)
		c.options = append(c.options, o)
	}
	return c, all
}

// TestConformanceRedisServers waits in many cases side by side, when everything that calculates is done: a call to a master has a
// fifth of a second.
func TestConformanceRedisServers(t *testing.T) {
	t.Parallel()
	c, _ := servers(t, 3)
	locktest.RunParallel(t, func(tb testing.TB) locktest.Store { return c.named(tb).store() })
}

// named is the same cluster in a namespace of the test's own.
func (c cluster) named(tb testing.TB) cluster {
	c.cfg.Namespace = strings.NewReplacer("/", " ", ":", " ").Replace(tb.Name())
	c.first(tb)
	return c
}

func TestConformanceEmbedded(t *testing.T) {
	locktest.RunInBubble(t, func(tb testing.TB) locktest.Store {
		c, _ := embedded(tb, 3)
		c.bootstrap(tb)
		return c.store()
	})
}

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func request(name, owner string) locking.Request {
	return locking.Request{Name: name, Owner: owner, TTL: 30 * time.Second}
}

// empty restarts a server without its data.
func empty(t *testing.T, e *redistest.Embedded) {
	t.Helper()
	e.Mini().FlushAll()
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
}
