//go:build unix

package zklock_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/locking/zklock"
)

var (
	historySeed  = flag.Uint64("histories.seed", 1, "the first of the histories that TestHistories plays")
	historyCount = flag.Int("histories", 10, "how many histories TestHistories plays")
)

// network is the network of one client. It loses only replies to requests about a holder's node.
type network struct{ redistest.Net }

func (n *network) LoseReply() { n.LoseReplies(1, "/held-") }

// dial is a zklock.ClientConfig.Dial over the network.
func (n *network) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return n.Wrap(new(net.Dialer).DialContext)(ctx, network, address)
}

// connect returns a new client over a network of its own, closed when the test ends.
func connect(tb testing.TB, servers []string, auth ...zklock.Auth) (*zklock.Client, *network) {
	n := new(network)
	c := zklock.NewClient(servers, zklock.ClientConfig{Dial: n.dial, Logger: slog.New(slog.DiscardHandler), Auth: auth})
	tb.Cleanup(c.Close)
	tb.Cleanup(n.Heal) // a dial that hangs would delay Close
	return c, n
}

var roots atomic.Int64

// store is the kit's view of an ensemble: a root of its own.
func store(servers ...string) locktest.Store {
	root := fmt.Sprint("/kit/", roots.Add(1))
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			c, n := connect(tb, servers)
			return zklock.NewDriver(c, zklock.Config{Root: root}), n
		},
		Late:   1500 * time.Millisecond, // a session of a second, and its end
		Forget: func(tb testing.TB) { deleteAll(tb, servers, root) },
	}
}

func TestConformance(t *testing.T) {
	server := theServer(t)
	locktest.RunParallel(t, func(testing.TB) locktest.Store { return store(server.addr()) })
}

// TestConformanceEnsemble is the kit over three servers; each client is connected to any of them.
func TestConformanceEnsemble(t *testing.T) {
	e := startEnsemble(t, fast)
	locktest.RunParallel(t, func(testing.TB) locktest.Store { return store(e.addrs()...) })
}

func TestHistories(t *testing.T) {
	histories(t, theServer(t).addr())
}

func TestHistoriesEnsemble(t *testing.T) {
	histories(t, startEnsemble(t, fast).addrs()...)
}

func histories(t *testing.T, servers ...string) {
	t.Helper()
	locktest.Histories(t, locktest.HistoryConfig{Seed: *historySeed, Count: *historyCount}, func(testing.TB) locktest.Store {
		s := store(servers...)
		connect := s.Connect
		s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
			d, n := connect(tb)
			warm(tb, d)
			return d, n
		}
		return s
	})
}

// warm opens the sessions of a history, because its calls are too short for that.
func warm(tb testing.TB, d locking.Driver) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	owner := uuid.NewString()
	_, err := d.Acquire(ctx, locking.Request{Name: owner, Owner: owner, TTL: 200 * time.Millisecond})
	if err == nil {
		_, err = d.Owner(ctx, owner)
	}
	if err != nil {
		tb.Fatal(err)
	}
	_ = d.Release(ctx, owner, owner) // unless it has lapsed
}

// BenchmarkLock writes to the disk, as servers do that keep locks over a restart.
func BenchmarkLock(b *testing.B) {
	for name, servers := range map[string][]string{"one server": {startServer(b).addr()}, "three servers": startEnsemble(b).addrs()} {
		b.Run(name, func(b *testing.B) {
			locktest.Benchmark(b, func(testing.TB) locktest.Store { return store(servers...) })
		})
	}
}
