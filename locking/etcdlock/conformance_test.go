//go:build unix

package etcdlock_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
	"github.com/escapement/escapement/locking/locktest"
)

var (
	historySeed  = flag.Uint64("histories.seed", 1, "the first of the histories that TestHistories plays")
	historyCount = flag.Int("histories", 20, "how many histories TestHistories plays")
)

// counter counts the requests of clients.
type counter struct{ n atomic.Int64 }

// count adds the counter to the settings of a client.
func (c *counter) count(cfg etcdlock.ClientConfig) etcdlock.ClientConfig {
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, ask, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
			c.n.Add(1)
			return call(ctx, method, ask, reply, cc, o...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			c.n.Add(1)
			return open(ctx, desc, cc, method, o...)
		}))
	return cfg
}

// countDials adds a counter of connections.
func (c *counter) countDials(cfg etcdlock.ClientConfig) etcdlock.ClientConfig {
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		c.n.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}))
	return cfg
}

// driver returns a driver with a client of its own, closed when the test ends.
func driver(tb testing.TB, prefix string, servers ...*server) (*etcdlock.Driver, network) {
	n := newNetwork(prefix)
	return driverFor(tb, prefix, n, n.client(servers...)), n
}

func driverFor(tb testing.TB, prefix string, n network, cfg etcdlock.ClientConfig) *etcdlock.Driver {
	d := etcdlock.NewDriver(connect(tb, cfg), etcdlock.Config{Prefix: prefix})
	tb.Cleanup(func() {
		n.Heal()
		d.Close()
		d.Wait()
	})
	return d
}

// store is the kit's view of a cluster: a prefix of its own.
func store(servers ...*server) locktest.Store {
	var sent counter
	prefix := newPrefix()
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) {
			n := newNetwork(prefix)
			return driverFor(tb, prefix, n, sent.count(n.client(servers...))), n
		},
		Commands:   sent.n.Load,
		HistoryTTL: 2 * time.Second,
		Late:       time.Second,
		Trips:      2,
	}
}

func TestConformance(t *testing.T) {
	servers := startServers(t, 1)
	locktest.RunParallel(t, func(testing.TB) locktest.Store { return store(servers...) })
}

// TestHistories plays several histories at a time: their leases are ten times as long as at other
// stores.
func TestHistories(t *testing.T) {
	const lanes = 10
	servers := startServers(t, 1)
	var playing sync.WaitGroup
	for i := range lanes {
		first, end := i**historyCount/lanes, (i+1)**historyCount/lanes
		c := locktest.HistoryConfig{Seed: *historySeed + uint64(first), Count: end - first}
		playing.Go(func() {
			t.Run(fmt.Sprint("from ", c.Seed), func(t *testing.T) {
				locktest.Histories(t, c, func(testing.TB) locktest.Store { return store(servers...) })
			})
		})
	}
	playing.Wait()
}

func BenchmarkLock(b *testing.B) {
	servers := startServers(b, 1)
	locktest.Benchmark(b, func(testing.TB) locktest.Store { return store(servers...) })
}
