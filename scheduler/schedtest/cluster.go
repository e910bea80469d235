package schedtest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// cluster is a simulation under way.
type cluster struct {
	plan       Plan
	began      time.Time
	server     *redistest.Embedded
	wire       *wire.Wire
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
		plan: p, began: time.Now(), server: server, wire: wire.New(), scripts: scriptsOf(p), settle: p.settle(), within: p.within(),
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
	c.wire.Post(at, from, sum, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	})
}

// from carries a process's message to a receiver other than Redis: f is called on its arrival,
// never if the process has died, and not before the process goes on if it is stopped.
func (c *cluster) from(p *process, sum uint64, f func()) {
	now := time.Now()
	c.post(now.Add(wire.Lag(c.plan.Seed, p.no, sum, now)), p.no, sum, func() { c.release(p, sum, f) })
}

// release calls f unless the process is dead, when it is not stopped.
func (c *cluster) release(p *process, sum uint64, f func()) {
	switch {
	case p.dead:
	case p.stopped():
		at := p.pausedUntil
		c.post(at.Add(wire.Lag(c.plan.Seed, p.no, sum, at)), p.no, sum, func() { c.release(p, sum, f) })
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

// trace is the history, in order, for people; and a digest of it and of every message.
type trace struct {
	lines []string
	sum   hash.Hash
}

// add adds a line to the story and to the digest.
func (s *trace) add(at time.Duration, who, what string) {
	line := fmt.Sprintf("%13.6f  %-6s %s", at.Seconds(), who, what)
	s.lines = append(s.lines, line)
	s.hash().Write([]byte(line))
}

// fold adds to the digest alone.
func (s *trace) fold(sums ...uint64) {
	for _, x := range sums {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], x)
		s.hash().Write(b[:])
	}
}

func (s *trace) hash() hash.Hash {
	if s.sum == nil {
		s.sum = sha256.New()
	}
	return s.sum
}

func (s *trace) digest() string { return hex.EncodeToString(s.hash().Sum(nil)[:16]) }

// describe renders a request and its reply: the script, the words in the request that name jobs or
// runs, and the words of the answer.
func describe(m *message, reply []string) string {
	var named, answer []string
	for _, id := range m.commands[0] {
		if m.conn.process.cluster.runs[id] != nil {
			named = append(named, id)
		}
	}
	for _, w := range reply {
		if len(w) > 2 && len(w) < 12 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
			answer = append(answer, w)
		}
	}
	slices.Sort(named) // a node may batch the same things in another order
	slices.Sort(answer)
	return m.op + " " + strings.Join(named, " ") + " -> " + strings.Join(answer, " ")
}

// foundNothing ends the line of a sweep that had nothing to look at.
const foundNothing = " sweep  -> "

// folded is a story in which sweeps in a row that found nothing are one line.
func folded(story []string) []string {
	var told []string
	for i := 0; i < len(story); {
		n := 0
		for i+n < len(story) && strings.HasSuffix(story[i+n], foundNothing) {
			n++
		}
		if n > 2 {
			told = append(told, fmt.Sprintf("%s, and %d more", story[i]+"nothing", n-1))
			i += n
			continue
		}
		told = append(told, story[i])
		i++
	}
	return told
}

// tell adds a line for a message that is too common for the story. The nodes' goroutines call it
// for requests, and their order within an instant means nothing, so the line stays out of the
// digest.
func (c *cluster) tell(m *message, does string, words any) {
	if c.plan.wordy {
		line := fmt.Sprintf("%13.9f  %-6s %s %.300q", c.elapsed().Seconds(), m.conn.process.name, does, words)
		c.story.lines = append(c.story.lines, line)
	}
}

// Counters count the events of a simulation: a plan in which nothing happens shows nothing.
type Counters map[string]int

// Add adds the counts of another simulation.
func (c Counters) Add(other Counters) {
	for what, n := range other {
		c[what] += n
	}
}

// never returns which of some counters have stayed at zero.
func (c Counters) never(shows []string) []string {
	return slices.DeleteFunc(slices.Clone(shows), func(what string) bool { return c[what] > 0 })
}

// String lists the counts by name, a line each.
func (c Counters) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%8d  %s\n", c[what], what)
	}
	return b.String()
}
