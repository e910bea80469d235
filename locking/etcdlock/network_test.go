//go:build unix

package etcdlock_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/escapement/escapement/locking/etcdlock"
	"github.com/escapement/escapement/locking/redistest"
)

// network is a redistest.Net, which works for any client that dials, for the one connection that many calls of gRPC share.
type network struct {
	*redistest.Net
	faults *faults
}

// faults are the faults that a redistest.Net makes in another way.
type faults struct {
	mu    sync.Mutex
	lose  bool   // the reply to the next request that contains match
	match []byte // of a request
	delay time.Duration
}

// newNetwork returns the network of a client whose keys begin with prefix.
func newNetwork(prefix string) network {
	return network{new(redistest.Net), &faults{match: []byte(prefix + "/")}}
}

// LoseReply lets the next request with a key reach the server and loses the later replies on its
// connection. The connection breaks when the client gives up.
func (n network) LoseReply() { n.faults.set(func(f *faults) { f.lose = true }) }

// Delay makes all replies arrive d later. Each packet has its own delay, whatever comes before.
func (n network) Delay(d time.Duration) { n.faults.set(func(f *faults) { f.delay = d }) }

func (n network) Heal() {
	n.faults.set(func(f *faults) { f.lose, f.delay = false, 0 })
	n.Net.Heal()
}

func (f *faults) set(change func(f *faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// client returns the settings of a client over this network.
func (n network) client(servers ...*server) etcdlock.ClientConfig {
	dial := n.Wrap(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
	return etcdlock.ClientConfig{Endpoints: endpoints(servers...), DialOptions: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := dial(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return newConn(c, n.faults), nil
		}),
	}}
}

// takeLoss reports whether the reply to p is the one to lose.
func (f *faults) takeLoss(p []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lose || !bytes.Contains(p, f.match) {
		return false
	}
	f.lose = false
	return true
}

// conn is one connection over a network.
type conn struct {
	net.Conn
	faults   *faults
	lossy    atomic.Bool // replies are lost
	arriving chan arrival
	closing  sync.Once
	closed   chan struct{}
	rest     []byte // of the arrival that is being read
}

// arrival is something that came back, to be delivered later.
type arrival struct {
	data []byte
	err  error
	due  time.Time
}

func newConn(inner net.Conn, f *faults) *conn {
	c := &conn{Conn: inner, faults: f, arriving: make(chan arrival), closed: make(chan struct{})}
	in := make(chan arrival, 1024)
	go c.receive(in) // ends with the inner connection
	go c.deliver(in)
	return c
}

func (c *conn) receive(in chan<- arrival) {
	defer close(in)
	for {
		p := make([]byte, 32<<10)
		n, err := c.Conn.Read(p)
		if c.lossy.Load() {
			n = 0
		}
		var delay time.Duration
		c.faults.set(func(f *faults) { delay = f.delay })
		in <- arrival{p[:n], err, time.Now().Add(delay)}
		if err != nil {
			return
		}
	}
}

func (c *conn) deliver(in <-chan arrival) {
	for a := range in {
		select {
		case <-time.After(time.Until(a.due)):
		case <-c.closed:
		}
		select {
		case c.arriving <- a:
		case <-c.closed:
		}
	}
}

func (c *conn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		select {
		case a := <-c.arriving:
			c.rest = a.data
			if a.err != nil {
				return 0, a.err
			}
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write breaks the connection after an error, because gRPC waits for its reader to notice.
func (c *conn) Write(p []byte) (int, error) {
	if c.lossy.Load() && givesUp(p) {
		_ = c.Close()
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if c.faults.takeLoss(p) {
		c.lossy.Store(true)
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

func (c *conn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// givesUp reports whether HTTP/2 frames end a call.
func givesUp(frames []byte) bool {
	const header, resetStream = 9, 3
	for len(frames) >= header {
		if frames[3] == resetStream {
			return true
		}
		size := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
		frames = frames[min(header+size, len(frames)):]
	}
	return false
}
