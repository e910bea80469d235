//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// nodeTimeout is how long a master may be silent before its replica takes its place.
	nodeTimeout = 1500 * time.Millisecond

	// busOffset is how far above its port a node listens for the other nodes.
	busOffset = 10000

	// nodeAnswers is how long one node may take to answer a question that is repeated; a paused
	// node does not answer.
	nodeAnswers = 500 * time.Millisecond
)

// ClusterConfig is how StartClusterProcess starts its processes.
type ClusterConfig struct {
	Dir  string   // where their data goes; required, must exist
	Args []string // more arguments of each, after the usual ones
}

// Cluster is a Redis Cluster of three masters with a replica each, all on the
// loopback interface. A master that does not answer for a second and a half is
// replaced.
type Cluster struct {
	servers []*Server // the first masters first, then their replicas in the same order
}

// StartCluster starts a Cluster for one test and ends it, by its pids, when the
// test does.
func StartCluster(tb TB) *Cluster {
	tb.Helper()
	c, err := StartClusterProcess(ClusterConfig{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Kill(); err != nil {
			tb.Fatal(err)
		}
	})
	return c
}

// StartClusterProcess starts a Cluster and returns when every node serves and
// every replica follows its master. The caller ends it with Kill; on Linux it
// also ends with this process.
func StartClusterProcess(cfg ClusterConfig) (*Cluster, error) {
	if cfg.Dir == "" {
		return nil, errors.New("redis-server: no directory for the data; set ClusterConfig.Dir")
	}
	c := &Cluster{}
	if err := c.start(cfg); err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return c, nil
}

func (c *Cluster) start(cfg ClusterConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), standstill)
	defer cancel()
	for i := range 2 * clusterMasters {
		server, err := startNode(filepath.Join(cfg.Dir, fmt.Sprintf("node-%d", i+1)), cfg.Args)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server)
	}
	if err := c.assignSlots(ctx); err != nil {
		return err
	}
	if err := until(ctx, "the nodes of the cluster know each other", c.connected); err != nil {
		return err
	}
	for i, replica := range c.servers[clusterMasters:] {
		id, err := myID(ctx, c.servers[i])
		if err != nil {
			return err
		}
		// The other nodes may see a node before it sees them: then the command fails and is
		// repeated.
		if err := until(ctx, "the cluster has its replicas", func(ctx context.Context) (bool, error) {
			err := orderOnce(ctx, replica, "cluster", "replicate", id).Err()
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	return until(ctx, "every node of the cluster serves", c.serves)
}

// startNode starts one node, which has no connection to other nodes yet.
func startNode(dir string, more []string) (s *Server, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	args := []string{
		"--appendonly", "no", "--repl-diskless-sync-delay", "0",
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
	}
	for range 5 { // another process may take a port between finding and using it
		port, err := freeNodePort()
		if err != nil {
			return nil, err
		}
		s, err = StartProcess(ProcessConfig{Dir: dir, Port: port, Args: append(args, more...)})
		if err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return s, err
		}
	}
	return s, err
}

// freeNodePort returns a port that is free together with the port of its bus. Both lie below the
// ports that the system gives to outgoing connections, which would take one now and then.
func freeNodePort() (int, error) {
	for range 200 {
		port := 11000 + rand.IntN(11000)
		if listens(port) && listens(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("redis-server: no free pair of ports, one %d above the other, between 11000 and 32000", busOffset)
}

func listens(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// assignSlots assigns the slots to the masters, and makes all nodes meet the first.
func (c *Cluster) assignSlots(ctx context.Context) error {
	for i, server := range c.servers {
		epoch := order(ctx, server, "cluster", "set-config-epoch", i+1).Err()
		if epoch != nil {
			return fmt.Errorf("redis cluster: %s: %w", server.Addr(), epoch)
		}
		if i < clusterMasters {
			from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
			if err := order(ctx, server, "cluster", "addslotsrange", from, to).Err(); err != nil {
				return fmt.Errorf("redis cluster: %s, CLUSTER ADDSLOTSRANGE, which Redis has from 7.0 on: %w", server.Addr(), err)
			}
		}
		if err := order(ctx, server, "cluster", "meet", "127.0.0.1", c.servers[0].cfg.Port).Err(); err != nil {
			return fmt.Errorf("redis cluster: %s: %w", server.Addr(), err)
		}
	}
	return nil
}

// connected reports whether every node sees all other nodes.
func (c *Cluster) connected(ctx context.Context) (bool, error) {
	return c.all(ctx, func(known []node) bool {
		return len(known) == len(c.servers) && !slices.ContainsFunc(known, func(n node) bool { return n.has("handshake") })
	})
}

// serves reports whether every node sees all masters and their replicas at work.
func (c *Cluster) serves(ctx context.Context) (bool, error) {
	for _, s := range c.servers {
		state, err := orderOnce(ctx, s, "cluster", "info").Text()
		if err != nil || !strings.Contains(state, "cluster_state:ok") {
			return false, err
		}
	}
	for _, s := range c.servers[clusterMasters:] {
		if ok, err := inSync(ctx, s); !ok {
			return false, err
		}
	}
	return c.all(ctx, func(known []node) bool {
		working := 0
		for _, n := range known {
			if n.has("slave") && n.linked {
				working++
			}
		}
		return working == clusterMasters
	})
}

func (c *Cluster) all(ctx context.Context, yes func(known []node) bool) (bool, error) {
	for _, s := range c.servers {
		known, err := nodes(ctx, s)
		if err != nil || !yes(known) {
			return false, err
		}
	}
	return true, nil
}

// Servers returns the masters and the replicas; which is which changes. A killed server is empty
// when it is started again: call its Restart only when its replica has taken its place.
func (c *Cluster) Servers() []*Server { return c.servers }

// Options returns the settings of Client: ClientOptions with the usual redirections, without which
// a client cannot follow a slot. A client that follows redirections also repeats a call whose
// connection broke: redisconn.Check permits it, because every script of this library may be
// repeated.
func (c *Cluster) Options() *redis.ClusterOptions {
	addrs := make([]string, len(c.servers))
	for i, s := range c.servers {
		addrs[i] = s.Addr()
	}
	return clusterOptions(addrs)
}

// Client returns a client of the whole cluster, closed when the test ends.
func (c *Cluster) Client(tb TB) *redis.ClusterClient {
	tb.Helper()
	return c.client(tb, c.Options())
}

// ClientOver is Client over networks: the function returns the one for an address, nil for a healthy one. Heal them before the
// test ends.
func (c *Cluster) ClientOver(tb TB, road func(addr string) *Net) *redis.ClusterClient {
	tb.Helper()
	o := c.Options()
	o.Dialer = dialOver(road, redis.NewDialer(&redis.Options{}))
	return c.client(tb, o)
}

func (c *Cluster) client(tb TB, o *redis.ClusterOptions) *redis.ClusterClient {
	tb.Helper()
	client := redis.NewClusterClient(o)
	tb.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Fatalf("close the client of the cluster: %v", err)
		}
	})
	return client
}

// Kill ends all processes.
func (c *Cluster) Kill() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Kill())
	}
	return errors.Join(errs...)
}
