package schedtest

import (
	"bytes"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
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

// message is a request on its way to Redis and its reply on the way back.
type message struct {
	conn     *conn
	commands [][]string // at least one
	op       string     // claim, settle, ...; "" for a message without a name
	sum      uint64
}

// send takes the bytes that a client writes to a connection and makes messages of complete
// requests. The nodes' goroutines call send, for one connection one at a time.
func (c *cluster) send(cn *conn, b []byte) {
	var all [][]string
	if all, cn.partial = wire.Commands(append(cn.partial, b...)); len(all) == 0 {
		return
	}
	m := &message{conn: cn, commands: all, sum: wire.SumOf(all), op: c.scripts[wire.ScriptOf(all[0])]}
	p := cn.process
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.dead {
		cn.fail(syscall.ECONNRESET)
		return
	}
	c.asked(m)
	c.tell(m, "sends", all)
	now := time.Now()
	at := now.Add(wire.Lag(c.plan.Seed, p.no, m.sum, now))
	if !at.After(cn.arrival) {
		at = cn.arrival.Add(1) // a connection keeps the order
	}
	cn.arrival = at
	c.post(at, p.no, m.sum, func() { c.release(p, m.sum, func() { c.arrive(m) }) })
}

// arrive is a request at Redis' door. Faults before it strike here.
func (c *cluster) arrive(m *message) {
	p := m.conn.process
	hit := c.strike("before", m.op, p)
	switch {
	case p.dead:
		return
	case p.stopped():
		c.release(p, m.sum, func() { c.enter(m) })
	case hit == nil:
		c.enter(m)
	case hit.Do == Delay:
		c.post(time.Now().Add(hit.For), p.no, m.sum, func() {
			c.seen["message came late"]++
			c.enter(m)
		})
	case hit.Do == Reset:
		c.unanswered(m, false)
		m.conn.fail(syscall.ECONNRESET)
	case hit.Do == Refuse:
		c.seen["call refused"]++
		c.reply(m, bytes.Repeat([]byte("-OOM command not allowed when used memory > 'maxmemory'.\r\n"), len(m.commands)), 0)
	default:
		c.unanswered(m, false)
	}
}

// enter has Redis carry a request out. Faults after it strike here.
func (c *cluster) enter(m *message) {
	p := m.conn.process
	switch {
	case p.cut(requests):
		c.unanswered(m, false)
		return
	case !c.redis.up:
		c.unanswered(m, false)
		m.conn.fail(syscall.ECONNREFUSED)
		return
	}
	reply := c.carry(m)
	c.carried(m, reply)
	if reply[0] == '-' { // not carried out: Redis does not know the script (any more)
		if c.redis.forgot {
			c.seen["script asked for again after it was flushed"]++
		}
		c.reply(m, reply, 0)
		return
	}
	hit := c.strike("after", m.op, p)
	switch {
	case p.dead:
		return
	case hit == nil:
		c.reply(m, reply, 0)
	case hit.Do == Delay:
		c.seen["message came late"]++
		c.reply(m, reply, hit.For)
	case hit.Do == Reset:
		c.unanswered(m, true)
		m.conn.fail(syscall.ECONNRESET)
	default:
		c.unanswered(m, true)
	}
}

// reply sends a reply on its way back.
func (c *cluster) reply(m *message, reply []byte, later time.Duration) {
	p := m.conn.process
	now := time.Now().Add(later)
	c.post(now.Add(wire.Lag(c.plan.Seed, p.no, ^m.sum, now)), p.no, m.sum, func() {
		c.release(p, m.sum, func() {
			if p.cut(replies) {
				c.unanswered(m, true)
				return
			}
			c.answered(m, reply)
			m.conn.deliver(reply)
		})
	})
}
