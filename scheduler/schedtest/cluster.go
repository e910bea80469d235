package schedtest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// cluster is a simulation under way.
type cluster struct {
	plan       Plan
	began      time.Time
	server     *redistest.Embedded
	wire       *wire
	scripts    map[string]string // by SHA-1
	conns      atomic.Int64      // open connections
	working    atomic.Int64      // job functions that have not returned
	wrongWalls atomic.Int64      // how often a node read a wall clock that is wrong
	settle     time.Duration     // how long after a fault its effects may last
	within     time.Duration     // promise P6: how late a run may start

	mu        sync.Mutex // guards what follows
	redis     store
	nodeSlots []*nodeSlot
	processes []*process
	armed     []*armed
	idle      []*armed              // that never struck
	people    map[string]*audit.Job // operators' actions, by job
	grants    []audit.Grant
	unjudged  []string // jobs left out of the verdict: an operator removed them, or by the plan
	runs      map[string]*runTrace
	calls     map[string]*call
	askers    map[string]string    // by job and tick, the first node that claimed it
	opened    map[string]time.Time // ticks of sharded jobs, by id
	versions  map[string]uint64    // by job, the versions that ran ticks of it, a bit each
	sink      sink
	story     trace
	seen      Counters
	disturbed []audit.Disturbance
	wrong     []audit.Finding // findings that only the simulation can have
	spared    map[string]int  // by run, calls that came to nothing, because their context ended on the way
	healed    bool            // all faults have ended
	over      bool            // nothing starts any more
	ended     time.Time       // since then, by Redis' clock
}

// nodeSlot is a node's place: one process after another runs there.
type nodeSlot struct {
	name    string
	version int
	process *process
	wallOff atomic.Int64 // the machine's clock, less the true time, ns
}

func newCluster(p Plan, server *redistest.Embedded) *cluster {
	c := &cluster{
		plan: p, began: time.Now(), server: server, wire: newWire(), scripts: scriptsOf(p), settle: p.settle(), within: p.within(),
		runs: make(map[string]*runTrace), calls: make(map[string]*call), versions: make(map[string]uint64), askers: make(map[string]string),
		opened: make(map[string]time.Time),
		sink:   sink{top: make(map[string]int64), beside: p.beside()}, seen: make(Counters),
	}
	c.redis.up, c.people, c.spared = true, make(map[string]*audit.Job), make(map[string]int)
	c.unjudged = slices.Clone(p.unjudgedJobs)
	for _, name := range p.names() {
		s := &nodeSlot{name: name}
		s.wallOff.Store(int64(p.Offsets[name]))
		c.nodeSlots = append(c.nodeSlots, s)
	}
	for _, f := range p.Faults {
		c.redis.remember = c.redis.remember || f.rollsBack()
		c.arm(f)
	}
	c.rename()
	return c
}

// post has f called at an instant, under the lock, by the wire's goroutine.
func (c *cluster) post(at time.Time, from int, sum uint64, f func()) {
	c.wire.post(at, from, sum, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	})
}

// from carries a process's message to a receiver other than Redis: f is called on its arrival,
// never if the process has died, and not before the process goes on if it is stopped.
func (c *cluster) from(p *process, sum uint64, f func()) {
	now := time.Now()
	c.post(now.Add(lag(c.plan.Seed, p.no, sum, now)), p.no, sum, func() { c.release(p, sum, f) })
}

// release calls f unless the process is dead, when it is not stopped.
func (c *cluster) release(p *process, sum uint64, f func()) {
	switch {
	case p.dead:
	case p.stopped():
		at := p.pausedUntil
		c.post(at.Add(lag(c.plan.Seed, p.no, sum, at)), p.no, sum, func() { c.release(p, sum, f) })
	default:
		f()
	}
}

// elapsed is the time since the start.
func (c *cluster) elapsed() time.Duration { return time.Since(c.began) }

// redisTime returns the time of Redis' clock.
func (c *cluster) redisTime() time.Time {
	now := time.Now()
	return now.Add(c.redis.stepped(now))
}

// nodesTime returns Redis' time as the nodes estimate it: they do not follow a step beyond MaxStep.
// Operators' actions have this time.
func (c *cluster) nodesTime() time.Time {
	now := time.Now()
	if off := c.redis.stepped(now); off.Abs() <= c.plan.Config.MaxStep {
		now = now.Add(off)
	}
	return now
}

// note writes a line of the story.
func (c *cluster) note(who, format string, args ...any) {
	c.story.add(c.elapsed(), who, fmt.Sprintf(format, args...))
}

// blame records a broken promise that only the simulation can see.
func (c *cluster) blame(kind audit.Kind, job string, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	c.note("", "%s: %s: %s", kind, job, what)
	c.wrong = append(c.wrong, audit.NewFinding(kind, job, time.Time{}, "%s", what))
}
