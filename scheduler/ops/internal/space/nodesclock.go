package space

import (
	"context"
	"sync"
	"time"
)

// nodesClockFor is how long a client uses the nodes' last estimate of Redis' clock.
const nodesClockFor = time.Second

// nodesClock is Redis' time as most living nodes believe it, when a client looked last.
type nodesClock struct {
	mu     sync.Mutex
	looked time.Time // by this machine's monotonic clock
	redis  time.Time
}

// nodesTime is the client's estimate of Redis' time: Redis' own, or another time that most living
// nodes use. It is the zero time, no estimate, when the roster cannot be read.
func (c *Conn) nodesTime(ctx context.Context) time.Time {
	sent := time.Now()
	if redis, fresh := c.clock.at(sent); fresh {
		return redis
	}
	view, err := c.Roster().Look(ctx)
	if err != nil {
		return time.Time{}
	}
	return c.clock.set(sent, view.Believed())
}

// at is the believed time at an instant of this machine, if the client has looked lately.
func (n *nodesClock) at(now time.Time) (redis time.Time, fresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	since := now.Sub(n.looked)
	return n.redis.Add(since), !n.looked.IsZero() && since <= nodesClockFor
}

// set stores the time in the answer to a call that was sent at an instant of this machine, and
// returns the believed time.
func (n *nodesClock) set(sent, redis time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.looked, n.redis = sent.Add(now.Sub(sent)/2), redis
	return redis.Add(now.Sub(n.looked))
}
