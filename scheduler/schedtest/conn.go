package schedtest

import (
	"bytes"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// conn is a process's end of a connection to Redis. Opening one takes no time and always succeeds;
// an unreachable Redis shows when a message is sent. So the choice among a pool's connections has
// no effect.
type conn struct {
	process *process

	partial []byte             // of a command that is not written whole; touched by Write only
	arrival time.Time          // of the latest request; guarded by the cluster's mu
	session *redistest.Session // Redis' end; touched by the wire's goroutine only

	closed sync.Once

	mu       sync.Mutex
	in       []byte        // for the client to read
	broken   error         // what it gets when in is empty
	deadline time.Time     // of Read
	changed  chan struct{} // holds one signal: in or broken has changed
}

func newConn(p *process) *conn { return &conn{process: p, changed: make(chan struct{}, 1)} }

// Write sends a request on its way.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.broken
	c.mu.Unlock()
	switch {
	case err != nil:
		return 0, err
	case bytes.Contains(b, []byte("\r\nhello\r\n")):
		// A new connection's greeting is refused on the spot, so that it speaks RESP2 and costs no
		// round trip.
		c.deliver([]byte("-ERR unknown command 'hello'\r\n"))
	default:
		c.process.cluster.send(c, b)
	}
	return len(b), nil
}

// Read waits for a reply until the deadline.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		n, err, deadline := copy(b, c.in), c.broken, c.deadline
		c.in = c.in[n:]
		c.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		if !c.wait(deadline) {
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
	}
}

// wait waits for a change; false when the deadline came first.
func (c *conn) wait(deadline time.Time) bool {
	if deadline.IsZero() {
		<-c.changed
		return true
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-c.changed:
		return true
	case <-timer.C:
		return false
	}
}

// deliver hands a reply to the client.
func (c *conn) deliver(reply []byte) {
	c.change(func() { c.in = append(c.in, reply...) })
}

// fail ends the connection with an error such as ECONNRESET.
func (c *conn) fail(why syscall.Errno) {
	c.change(func() { c.broken = &net.OpError{Op: "read", Net: "tcp", Err: why} })
}

func (c *conn) change(f func()) {
	c.mu.Lock()
	if c.broken == nil {
		f()
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Close ends the connection.
func (c *conn) Close() error {
	c.change(func() { c.broken = net.ErrClosed })
	c.closed.Do(func() { c.process.cluster.conns.Add(-1) })
	return nil
}

// SetDeadline sets the deadline of Read; writing never waits.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline sets the deadline of later Reads.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

// SetWriteDeadline does nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr names the process.
func (c *conn) LocalAddr() net.Addr { return &net.UnixAddr{Name: c.process.name, Net: "simulated"} }

// RemoteAddr names Redis.
func (c *conn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "redis", Net: "simulated"} }
