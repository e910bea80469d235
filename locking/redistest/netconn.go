package redistest

import (
	"net"
	"os"
	"sync"
	"time"
)

// conn is one connection over a Net.
type conn struct {
	net.Conn
	net    *Net
	once   sync.Once
	closed chan struct{} // closed by Close

	mu          sync.Mutex
	dropReplies bool // replies are dropped, because one was to be lost
	lostOut     bool // sent bytes have vanished: later bytes cannot arrive
	lostIn      bool // the same for received bytes
	deadline    time.Time

	// For the reader alone; a connection has one reader.
	held []byte // came back, not delivered yet
	due  time.Time
}

func (c *conn) Write(p []byte) (int, error) {
	out, in, _ := c.net.state()
	c.mu.Lock()
	torn := c.lostOut || c.lostIn && !in
	c.lostOut = c.lostOut || out
	c.mu.Unlock()
	switch {
	case out:
		return len(p), nil
	case torn:
		return 0, reset("write")
	}
	if c.net.takeLoss(p) {
		c.mu.Lock()
		c.dropReplies = true
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

// Read waits in the inner connection: it has a deadline, and a server that got
// nothing sends nothing.
func (c *conn) Read(p []byte) (int, error) {
	for {
		if len(c.held) > 0 {
			if err := c.hold(); err != nil {
				return 0, err
			}
			if !c.vanish() {
				n := copy(p, c.held)
				c.held = c.held[n:]
				return n, nil
			}
		}
		n, err := c.Conn.Read(p)
		if err != nil {
			return n, err
		}
		delay, arrived, err := c.arrive()
		switch {
		case err != nil:
			return 0, err
		case !arrived:
		case delay <= 0:
			return n, nil
		default:
			c.held, c.due = append(c.held, p[:n]...), time.Now().Add(delay)
		}
	}
}

// vanish drops the bytes that are held back, once replies are cut.
func (c *conn) vanish() bool {
	if _, in, _ := c.net.state(); !in {
		return false
	}
	c.held = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostIn = true
	return true
}

// arrive returns the fate of bytes that came back: their delay, whether they arrive at all, or the
// error of a broken connection.
func (c *conn) arrive() (delay time.Duration, arrived bool, err error) {
	out, in, delay := c.net.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case in:
		c.lostIn = true
		return 0, false, nil
	case c.lostIn, c.lostOut && !out:
		return 0, false, reset("read")
	}
	return delay, !c.dropReplies, nil
}

// hold waits until the bytes that are held back are due, or until the reader's deadline.
func (c *conn) hold() error {
	c.mu.Lock()
	end := c.deadline
	c.mu.Unlock()
	wait := time.Until(c.due)
	late := !end.IsZero() && end.Before(c.due)
	if late {
		wait = time.Until(end)
	}
	if wait > 0 { // timers that are over at once, on two processors, crash the race detector of Go 1.26 in a bubble of synctest
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.closed:
			return net.ErrClosed
		}
	}
	if late {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	return nil
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	c.setDeadline(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline also limits how long a delayed reply is waited for.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.setDeadline(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) setDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

// Close ends a wait for a delayed reply too.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
