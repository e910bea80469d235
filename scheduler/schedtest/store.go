package schedtest

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// pastKept is how many writes a fault can roll back.
const pastKept = 8

// store is the simulation's record of its Redis.
type store struct {
	up       bool
	runs     int       // of the server; names its id
	remember bool      // keep past: some fault will need it
	past     []past    // before each of the latest writes of a ledger script, oldest first
	lost     time.Time // when it last came back without writes that it had acknowledged
	forgot   bool      // FlushScripts has struck
	steps    []step    // of its clock
}

// past is Redis' data at an instant.
type past struct {
	at   time.Time
	held redistest.Snapshot
}

// step is a step of Redis' clock.
type step struct {
	at  time.Time
	off time.Duration // since then, Redis' clock less the true time
}

// stepped is how far Redis' clock was from the true time at an instant.
func (s *store) stepped(at time.Time) time.Duration {
	var off time.Duration
	for _, x := range s.steps {
		if !x.at.After(at) {
			off = x.off
		}
	}
	return off
}

// widest is how far Redis' clock was ever from the true time.
func (s *store) widest() time.Duration {
	var most time.Duration
	for _, x := range s.steps {
		most = max(most, x.off.Abs())
	}
	return most
}

// stepBy moves Redis' clock.
func (c *cluster) stepBy(d time.Duration) {
	now := time.Now()
	c.redis.steps = append(c.redis.steps, step{now, c.redis.stepped(now) + d})
	c.server.StepClock(d)
}

// byRedis is a span of true time as Redis' clock showed it: from the least that it showed to the
// greatest.
func (c *cluster) byRedis(s audit.Span) audit.Span {
	shown := func(at time.Time) time.Time { return at.Add(c.redis.stepped(at)) }
	out := audit.Span{From: shown(s.From), Until: shown(s.Until)}
	var before time.Duration
	for _, x := range c.redis.steps {
		until := x.at.Add(before)
		before = x.off
		if x.at.Before(s.From) || x.at.After(s.Until) {
			continue
		}
		for _, at := range []time.Time{until, x.at.Add(x.off)} {
			if at.Before(out.From) {
				out.From = at
			}
			if at.After(out.Until) {
				out.Until = at
			}
		}
	}
	return out
}

// datedLate returns the disturbances that began soon after a step of Redis' clock, dated by nodes
// that have not followed the step yet.
func (c *cluster) datedLate() []audit.Disturbance {
	var all []audit.Disturbance
	var before time.Duration
	for _, x := range c.redis.steps {
		for _, d := range c.disturbed {
			if !d.From.Before(x.at) && d.From.Before(x.at.Add(c.settle)) {
				d.From, d.Until = d.From.Add(before), d.Until.Add(before)
				all = append(all, d)
			}
		}
		before = x.off
	}
	return all
}

// carry has Redis carry out a message, and returns the replies.
func (c *cluster) carry(m *message) []byte {
	cn := m.conn
	if cn.session == nil {
		cn.session = c.server.Session()
	}
	if c.redis.remember && m.op != "" {
		c.redis.past = append(c.redis.past, past{time.Now(), c.server.Snapshot()})
		if len(c.redis.past) > pastKept {
			c.redis.past = c.redis.past[1:]
		}
	}
	var reply []byte
	for _, args := range m.commands {
		reply = append(reply, cn.session.Do(args)...)
	}
	return reply
}

// rename gives Redis a new id, as each start of a server does.
func (c *cluster) rename() {
	c.redis.runs++
	c.server.SetRunID(fmt.Sprintf("%040d", c.redis.runs))
}

// restart brings Redis back after a fault, or empties it.
func (c *cluster) restart(f Fault) {
	held := c.server.Mini().Dump()
	switch f.Do {
	case EmptyRedis, FlushRedis:
		c.server.Mini().FlushAll()
	case RollBackRedis, FlipRedis:
		if n := len(c.redis.past); n > 0 {
			c.server.Restore(c.redis.past[max(0, n-f.Writes)].held)
		}
	default:
	}
	if c.server.Mini().Dump() != held {
		if !c.plan.strict {
			c.redis.lost = time.Now()
		}
		c.seen["Redis lost something: "+string(f.Do)]++
	}
	c.redis.past = nil
	c.failedOver(f.loses())
	if f.Do == FlushRedis {
		return
	}
	c.flushScripts()
	c.rename()
	if f.Do == StopRedis || f.Do == EmptyRedis { // the other faults replace it by a replica, which has been up
		c.server.SetUptime(0)
	}
	c.redis.up = true
	c.note("redis", "is back")
}

// oldestLost is the instant from which on a fault loses writes.
func (c *cluster) oldestLost(f Fault) time.Time {
	if n := len(c.redis.past); f.rollsBack() && n > 0 {
		return c.redis.past[max(0, n-f.Writes)].at
	}
	if f.empties() {
		return c.began
	}
	return time.Now()
}

// flushScripts makes Redis forget its scripts.
func (c *cluster) flushScripts() {
	c.server.Session().Do([]string{"SCRIPT", "FLUSH"})
}
