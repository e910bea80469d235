package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Net is the network of one client, which can be made to fail. It decorates
// the client's dialer, so it works over TCP and over an embedded server's pipe,
// in a synctest bubble or outside. The zero value is a healthy network. Heal it
// before a bubble ends: go-redis dials in the background, and does not stop when
// its client is closed.
type Net struct {
	mu     sync.Mutex
	cut    bool
	healed chan struct{} // closed by Heal; made by Cut
	lose   int           // replies still to be lost
	match  []byte        // ... of requests that contain this
}

// Dialer is the type of redis.Options.Dialer.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Client returns a new client with options o over this network. The caller
// closes it; o is not changed.
func (n *Net) Client(o *redis.Options) *redis.Client {
	c := *o
	if c.Dialer == nil {
		c.Dialer = redis.NewDialer(&c)
	}
	c.Dialer = n.Wrap(c.Dialer)
	return redis.NewClient(&c)
}

// Wrap returns dial over this network.
func (n *Net) Wrap(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if healed := n.cutOff(); healed != nil {
			select { // a black hole: no refusal, no answer
			case <-healed:
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
			}
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, net: n}, nil
	}
}

// Cut makes the network silent: what is sent vanishes, what was on its way
// back too, new connections hang. Nobody gets an error before a deadline.
func (n *Net) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.cut {
		n.cut, n.healed = true, make(chan struct{})
	}
}

// Heal ends a Cut. Connections that lost something meanwhile are reset.
func (n *Net) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		n.cut = false
		close(n.healed)
	}
}

// LoseReplies lets the next count requests that contain match, in any case,
// reach the server and loses everything that comes back on their connections.
func (n *Net) LoseReplies(count int, match string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose, n.match = count, bytes.ToLower([]byte(match))
}

// Losing returns how many replies are still to be lost.
func (n *Net) Losing() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lose
}

// cutOff returns nil when the network is whole, else a channel that is closed
// when it is again.
func (n *Net) cutOff() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.cut {
		return nil
	}
	return n.healed
}

// takeLoss reports whether the reply to request p is one to lose.
func (n *Net) takeLoss(p []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lose == 0 || !bytes.Contains(bytes.ToLower(p), n.match) {
		return false
	}
	n.lose--
	return true
}

// conn is one connection over a Net.
type conn struct {
	net.Conn
	net *Net

	mu   sync.Mutex
	deaf bool // what comes back is lost
	torn bool // something was lost in a cut, so the streams do not match any more
}

func (c *conn) Write(p []byte) (int, error) {
	if c.net.cutOff() != nil {
		c.set(&c.torn)
		return len(p), nil
	}
	if c.get(&c.torn) {
		return 0, c.reset("write")
	}
	if c.net.takeLoss(p) {
		c.set(&c.deaf)
	}
	return c.Conn.Write(p)
}

// Read waits in the inner connection: it has a deadline, and a server that got
// nothing sends nothing.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil {
			return n, err
		}
		switch {
		case c.net.cutOff() != nil:
			c.set(&c.torn)
		case c.get(&c.torn):
			return 0, c.reset("read")
		case c.get(&c.deaf):
		default:
			return n, nil
		}
	}
}

func (c *conn) set(flag *bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*flag = true
}

func (c *conn) get(flag *bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *flag
}

func (c *conn) reset(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
}
