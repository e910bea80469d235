package schedtest

import (
	"bytes"
	"syscall"
	"time"
)

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
	if all, cn.partial = commands(append(cn.partial, b...)); len(all) == 0 {
		return
	}
	m := &message{conn: cn, commands: all, sum: sumOf(all), op: c.scripts[scriptOf(all[0])]}
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
	at := now.Add(lag(c.plan.Seed, p.no, m.sum, now))
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
	c.post(now.Add(lag(c.plan.Seed, p.no, ^m.sum, now)), p.no, m.sum, func() {
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
