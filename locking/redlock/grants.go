package redlock

import (
	"maps"
	"sync"
	"time"
)

// grants are the owners that this driver has granted a lock to, until it is
// released or has lapsed. An owner that asks again, and fails, keeps what it has.
type grants struct {
	mu      sync.Mutex
	until   map[string]time.Time
	cleanAt int // forget those that have lapsed when there are so many
}

func (g *grants) add(owner string, ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.until == nil {
		g.until = make(map[string]time.Time)
	}
	if len(g.until) >= g.cleanAt {
		maps.DeleteFunc(g.until, func(_ string, t time.Time) bool { return t.Before(now) })
		g.cleanAt = 2*len(g.until) + 64
	}
	g.until[owner] = now.Add(ttl)
}

func (g *grants) remove(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.until, owner)
}

func (g *grants) has(owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.until[owner])
}
