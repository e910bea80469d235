package zklock

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// link is the network of one session. The library waits for an answer without a limit, and for a
// handshake up to seven session time-outs; link limits both. link also reads the time-out that the
// server has agreed to, which the library hides.
type link struct {
	dial    zk.Dialer
	timeout time.Duration // the session's, as requested

	agreed   atomic.Int64 // time.Duration; 0: no session yet
	received atomic.Int64 // when something arrived last, since start
	start    time.Time

	mu        sync.Mutex
	current   *conn
	handshake time.Duration // limit of the next one
	closed    bool
}

const (
	minHandshake = time.Second
	maxHandshake = 10 * time.Second // or the session time-out, if that is longer
)

func newLink(dial zk.Dialer, timeout time.Duration) *link {
	return &link{dial: dial, timeout: timeout, start: time.Now()}
}

// connect is a zk.Dialer. It closes the connection before, because the library does not when a session has expired. After
// a handshake without an answer, the next one has twice the time: each one keeps the session alive at the server, so that a far
// server would keep the locks of a client that never gets its answers.
func (l *link) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	limit := l.nextHandshake()
	if l.drop(func(*conn) bool { return true }) {
		return nil, net.ErrClosed
	}
	nc, err := l.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, in: bufio.NewReader(nc), link: l}
	if err := nc.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = nc.Close()
		return nil, net.ErrClosed
	}
	l.current = c
	return c, nil
}

func (l *link) nextHandshake() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := max(minHandshake, l.timeout/6)
	if l.current != nil && l.current.slow.Load() {
		l.handshake = min(2*l.handshake, max(maxHandshake, l.timeout))
	} else {
		l.handshake = first
	}
	return l.handshake
}

// drop closes the present connection if cond holds for it. True: the link is closed.
func (l *link) drop(cond func(c *conn) bool) (closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && cond(l.current) {
		_ = l.current.Close()
		l.current = nil
	}
	return l.closed
}

// unanswered drops a connection on which nothing has arrived since a request was sent at since, so that the library
// tries the next server. By itself it would wait for two thirds of the session time-out.
func (l *link) unanswered(since time.Time) {
	sent := since.Sub(l.start)
	l.drop(func(c *conn) bool { return c.established.Load() && time.Duration(l.received.Load()) < sent })
}

// close ends the connection, and lets no other begin.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.drop(func(*conn) bool { return true })
}

// conn is one connection. Its first packet is the answer to the handshake: length, protocol version, time-out in ms.
type conn struct {
	net.Conn
	in          *bufio.Reader // the library reads each answer in two pieces
	link        *link
	head        []byte // the first 12 bytes
	established atomic.Bool
	slow        atomic.Bool // the time for the handshake was over
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 {
		c.link.received.Store(int64(time.Since(c.link.start)))
	}
	if len(c.head) < 12 && errors.Is(err, os.ErrDeadlineExceeded) {
		c.slow.Store(true)
	}
	if want := 12 - len(c.head); n > 0 && want > 0 {
		c.head = append(c.head, p[:min(n, want)]...)
		if len(c.head) == 12 {
			if ms := binary.BigEndian.Uint32(c.head[8:]); ms > 0 { // 0: the session has expired
				c.link.agreed.Store(int64(time.Duration(ms) * time.Millisecond))
			}
			c.established.Store(true)
		}
	}
	return n, err
}

// SetReadDeadline does nothing before the handshake is over: see link.
func (c *conn) SetReadDeadline(t time.Time) error {
	if len(c.head) < 12 {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// quickTries is how often each server is tried before the library pauses for a second, and ends the calls that wait.
const quickTries = 3

// hosts is a zk.HostProvider for quickTries. Names are resolved by each dial, and not once for ever.
type hosts struct {
	servers     []string
	next, tried int
}

func (h *hosts) Init(servers []string) error {
	h.servers = slices.Clone(servers)
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

func (h *hosts) Next() (server string, pause bool) {
	server = h.servers[h.next%len(h.servers)]
	pause = h.tried >= quickTries*len(h.servers) && h.tried%len(h.servers) == 0
	h.next++
	h.tried++
	return server, pause
}

func (h *hosts) Connected() { h.tried = 0 }
