package schedtest

import (
	"bytes"
	"container/heap"
	"sync"
	"syscall"
	"time"
)

// wire carries everything that passes between the processes of a simulation: requests and replies
// of Redis, lines for the sink, and the plan's timed acts. One goroutine delivers one thing after
// another, each at an instant of its own, so that the effects of a delivery have come to rest
// before the next. For that reason a seed gives the same history on every machine.
type wire struct {
	mu    sync.Mutex
	queue deliveries
	last  time.Time     // of the latest delivery
	wake  chan struct{} // holds one signal: the queue has a new head
	stop  chan struct{} // closed to end run
	ended chan struct{} // closed by run
}

// delivery is an event at an instant.
type delivery struct {
	at   time.Time
	from int    // number of the process it comes from, then
	sum  uint64 // a digest of its content: orders deliveries of the same instant
	do   func()
}

func newWire() *wire {
	return &wire{wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
}

// post has do called at an instant, by the goroutine of run.
func (w *wire) post(at time.Time, from int, sum uint64, do func()) {
	d := &delivery{at: at, from: from, sum: sum, do: do}
	w.mu.Lock()
	heap.Push(&w.queue, d)
	first := w.queue[0] == d
	w.mu.Unlock()
	if first {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// run delivers until stop is closed; messages under way then are lost.
func (w *wire) run() {
	defer close(w.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d, wait := w.next()
		if d != nil {
			d.do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-w.stop:
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// next takes the delivery that is due, or returns how long to wait for the next.
func (w *wire) next() (*delivery, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, time.Hour
	}
	now := time.Now()
	head := w.queue[0]
	if !now.After(w.last) { // the latest delivery was at this very instant
		return nil, max(time.Nanosecond, head.at.Sub(now))
	}
	if wait := head.at.Sub(now); wait > 0 {
		return nil, wait
	}
	w.last = now
	d, _ := heap.Pop(&w.queue).(*delivery)
	return d, 0
}

// deliveries is a heap by instant.
type deliveries []*delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	a, b := q[i], q[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	if a.from != b.from {
		return a.from < b.from
	}
	return a.sum < b.sum
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *deliveries) Push(x any) {
	d, _ := x.(*delivery)
	*q = append(*q, d)
}

// Pop is for container/heap.
func (q *deliveries) Pop() any {
	old := *q
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return d
}

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
