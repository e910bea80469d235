package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Net is the network of one client, which can be made to fail. It decorates the client's dialer, so
// it works over TCP and over an embedded server's pipe, in a synctest bubble or outside. It loses
// and delays bytes on the client's side: to the server the connections look healthy and idle. The
// zero value is a healthy network. Heal it before a bubble ends: go-redis dials in the background,
// and does not stop when its client is closed.
type Net struct {
	mu      sync.Mutex
	out, in bool          // requests are dropped, replies are dropped
	healed  chan struct{} // closed by Heal; not nil while out or in
	delay   time.Duration // of replies
	lose    int           // replies still to be lost
	match   []byte        // ... of requests that contain this
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
		if healed := n.cutState(); healed != nil {
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
		return &conn{Conn: c, net: n, closed: make(chan struct{})}, nil
	}
}

// Cut drops requests and replies, and new connections hang. Calls end by their deadlines.
func (n *Net) Cut() { n.silence(true, true) }

// CutRequests drops requests; replies under way arrive. New connections hang.
func (n *Net) CutRequests() { n.silence(true, false) }

// CutReplies drops replies; requests over existing connections are executed. New connections hang, because their handshake
// needs both directions.
func (n *Net) CutReplies() { n.silence(false, true) }

func (n *Net) silence(out, in bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out, n.in = n.out || out, n.in || in
	if n.healed == nil {
		n.healed = make(chan struct{})
	}
}

// Delay makes all replies arrive d later, in their order. The time counts from when the
// connection's reader meets the bytes, so bytes that arrive while earlier bytes are held back come
// later by up to twice d. 0 ends the delay for bytes that are not held back yet.
func (n *Net) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// Heal ends a cut and a delay. Connections that lost something meanwhile are reset; a delayed reply comes at its time.
func (n *Net) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out, n.in, n.delay = false, false, 0
	if n.healed != nil {
		close(n.healed)
		n.healed = nil
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

// cutState returns nil when nothing is dropped, else a channel that Heal closes.
func (n *Net) cutState() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.healed
}

// state returns which directions are cut, and the delay of replies.
func (n *Net) state() (out, in bool, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out, n.in, n.delay
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

func reset(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
}
