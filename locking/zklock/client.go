package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// Auth is a client's credentials at ZooKeeper. They are never logged.
type Auth struct {
	Scheme      string // "digest"
	Credentials []byte // for digest "user:password"
}

// ClientConfig holds the settings of a Client. The zero value is useful.
type ClientConfig struct {
	// Auth is sent on each new connection. With Auth, only the same identity may use the nodes that
	// a Driver creates; without, any client. Default none.
	Auth []Auth

	// Dial opens a connection within a time, for TLS for example. Default net.DialTimeout.
	Dial func(network, address string, timeout time.Duration) (net.Conn, error)

	// Logger gets the messages of the ZooKeeper library (debug). Default slog.Default().
	Logger *slog.Logger
}

// Client connects to one ZooKeeper ensemble. It has a session, and a connection, for each session time-out
// that its locks need: see the package's comment. A session is opened when it is first used.
type Client struct {
	servers []string
	cfg     ClientConfig
	refused error // the fault of the arguments: the error of each call

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines of calls, watches and lapses

	mu       sync.Mutex
	sessions map[time.Duration]*session // by the requested time-out
	closed   bool
}

// NewClient returns a client of the servers, each as "host:port" or "host". It does not connect. The caller
// closes it, after the lockers that use it. Without servers, each call returns an *locking.InputError.
func NewClient(servers []string, cfg ClientConfig) *Client {
	if cfg.Dial == nil {
		cfg.Dial = net.DialTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	c := &Client{servers: servers, cfg: cfg, sessions: make(map[time.Duration]*session)}
	if len(servers) == 0 {
		c.refused = &locking.InputError{Field: "servers", Why: "is empty; give the ensemble's servers as host:port"}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all connections and returns when they are closed, after about three seconds at most. A
// session with a lock that was not released is not closed at ZooKeeper, where it ends with its
// time-out: its holder may still be at work.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.cancel()
	sessions := c.sessions
	c.sessions = nil
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(s.close)
	}
	closing.Wait()
	c.work.Wait()
}

// run runs f in a goroutine that Close waits for. False: the client is closed.
func (c *Client) run(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

// session returns the session for leases that last d. It lasts half as long again: see lasts.
func (c *Client) session(d time.Duration) (*session, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	timeout := sessionTimeout(d + d/2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the client is closed", locking.ErrUnreachable)
	}
	if s := c.sessions[timeout]; s != nil {
		return s, nil
	}
	s, err := openSession(c, timeout)
	if err != nil {
		return nil, err
	}
	c.sessions[timeout] = s
	return s, nil
}

// acl is the access list of all nodes of this client.
func (c *Client) acl() []zk.ACL {
	if len(c.cfg.Auth) > 0 {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// sessionTimeout returns the shortest time-out of 1, 1.5, 2, 3, 4, 6, ... seconds that is at least d, so that
// a driver has few sessions, and none that lasts much longer than its locks.
func sessionTimeout(d time.Duration) time.Duration {
	const longest = math.MaxInt32 * time.Millisecond // as the protocol has it; no server allows so much
	t := time.Second
	for ; t < d; t *= 2 {
		if t+t/2 >= d {
			return min(t+t/2, longest)
		}
	}
	return min(t, longest)
}

// explain returns an error that wraps locking.ErrUnreachable, unless err is ZooKeeper's own answer.
func explain(op string, err error) error {
	for _, answer := range []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrAuthFailed,
		zk.ErrInvalidACL, zk.ErrNoChildrenForEphemerals, zk.ErrInvalidPath, zk.ErrBadArguments,
	} {
		if errors.Is(err, answer) {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
}
