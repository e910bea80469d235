package schedtest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/testseam"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// process is one life of a node, from its start to its end or death.
type process struct {
	cluster *cluster
	slot    *nodeSlot
	no      int    // over all processes
	name    string // a.1, a.2, ...
	version int
	client  *redis.Client
	node    *scheduler.Node
	drain   context.CancelFunc // SIGTERM
	life    context.Context    // ends at a crash
	kill    context.CancelFunc
	done    chan struct{} // closed when Run has returned
	err     error         // of Run
	ids     atomic.Int64
	words   words

	// Guarded by the cluster's mu.
	born, died  time.Time // died: also when it has ended in peace
	dead        bool
	pausedUntil time.Time
	cutUntil    [2]time.Time // requests, replies
	leaving     bool         // ordered to drain
}

const (
	requests = 0
	replies  = 1
)

func (p *process) stopped() bool { return time.Now().Before(p.pausedUntil) }

func (p *process) cut(way int) bool { return time.Now().Before(p.cutUntil[way]) }

// start puts a new process into a slot. Must be called with mu held.
func (c *cluster) start(s *nodeSlot) {
	life := 1
	for _, p := range c.processes {
		if p.slot == s {
			life++
		}
	}
	p := &process{
		cluster: c, slot: s, no: len(c.processes), name: fmt.Sprintf("%s.%d", s.name, life), version: s.version, born: time.Now(), done: make(chan struct{}),
	}
	var stop context.Context
	stop, p.drain = context.WithCancel(context.Background())
	p.life, p.kill = context.WithCancel(context.Background())
	p.client = c.client(p)
	reg := jobs.NewRegistry()
	for _, j := range c.plan.jobs(s.version) {
		reg.MustAdd(p.wrap(j))
	}
	for _, name := range slices.Sorted(maps.Keys(c.plan.handlers)) {
		if err := reg.Handle(name, p.wrap(jobs.Job{Func: c.plan.handlers[name]}).Func); err != nil {
			c.blame(Harness, "", "handler %s: %v", name, err)
		}
	}
	cfg := c.plan.Config
	cfg.Labels = c.plan.labels(s.name)
	cfg.Name, cfg.Revision, cfg.WaitForRedis = s.name, fmt.Sprintf("v%03d", s.version), true
	cfg.Logger = slog.New(slog.NewTextHandler(&p.words, nil))
	testseam.Of(&cfg).Wall = func() time.Time {
		off := time.Duration(s.wallOff.Load())
		if off != 0 {
			c.wrongWalls.Add(1)
		}
		return time.Now().Add(off)
	}
	cfg.Hooks = p.hooks(cfg.Hooks)
	testseam.Of(&cfg).ZoneData = func() string { return "" }
	testseam.Of(&cfg).NewID = func() string { return fmt.Sprintf("%s-%d", p.name, p.ids.Add(1)) }
	node, err := scheduler.New(p.client, reg, cfg)
	if err != nil {
		c.blame(Harness, "", "node %s cannot be made: %v", s.name, err)
		close(p.done)
		return
	}
	p.node, s.process = node, p
	c.processes = append(c.processes, p)
	c.note(s.name, "starts as %s with version %d", p.name, s.version)
	go p.run(stop)
}

// hooks are a plan's hooks, with a hook for grants added.
func (p *process) hooks(of *scheduler.Hooks) *scheduler.Hooks {
	var h scheduler.Hooks
	if of != nil {
		h = *of
	}
	claimed := h.Claimed
	h.Claimed = func(e scheduler.RunEvent) {
		p.granted(e)
		if claimed != nil {
			claimed(e)
		}
	}
	return &h
}

// granted is called when the process has received a grant.
func (p *process) granted(e scheduler.RunEvent) {
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	p.cluster.from(p, wire.Fold(6, e.Run), func() { p.cluster.strike("after", "grant", p) })
}

// run is the process.
func (p *process) run(stop context.Context) {
	defer close(p.done)
	p.err = p.node.Run(stop)
	_ = p.client.Close() // it closes connections that exist in this process only
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	if !p.dead {
		p.died = time.Now()
	}
}

// nowhere is the address that clients show; no client dials it.
const nowhere = "127.0.0.1:6379"

// client makes the process's client: one connection is as good as another, see conn.
func (c *cluster) client(p *process) *redis.Client {
	o := redistest.ClientOptions(nowhere)
	o.PoolSize = 256
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		c.conns.Add(1)
		return newConn(p), nil
	}
	return redis.NewClient(o)
}

// crash ends the process at once. Must be called with mu held.
func (c *cluster) crash(p *process) {
	p.dead, p.died = true, time.Now()
	p.kill()
	p.drain() // its goroutines wind up; nothing that they do is seen any more
	for id, call := range c.calls {
		if call.process == p {
			delete(c.calls, id)
		}
	}
}

// replace drains a process and, when it has ended and after a while, starts another one in its
// slot. Must be called with mu held.
func (c *cluster) replace(p *process, after time.Duration) {
	if p.dead || p.leaving {
		return
	}
	p.leaving = true
	p.drain()
	go func() {
		<-p.done
		c.post(time.Now().Add(max(after, time.Millisecond)), p.no, 0, func() {
			c.note(p.slot.name, "%s has ended", p.name)
			c.seen["process ended in peace"]++
			c.replaceProcess(p)
		})
	}()
}

// replaceProcess starts a process where another one was. Must be called with mu held.
func (c *cluster) replaceProcess(p *process) {
	if !c.over && p.slot.process == p {
		c.start(p.slot)
	}
}

// words keeps the last lines of a node's log, for the report of a failure.
type words struct {
	mu    sync.Mutex
	lines []string
}

// wordsKept is how many lines are kept of each process.
const wordsKept = 200

// Write takes one line.
func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == wordsKept {
		w.lines = w.lines[1:]
	}
	w.lines = append(w.lines, strings.TrimSpace(string(b)))
	return len(b), nil
}

func (w *words) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}

// scriptsOf returns the names (claim, settle, ...) of the scripts that the simulation recognises on
// the wire, by SHA-1.
func scriptsOf(p Plan) map[string]string {
	all := maps.Clone(p.scripts)
	if all == nil {
		all = make(map[string]string)
	}
	for _, s := range ledger.Scripts() {
		all[s.Hash()] = s.Name()
	}
	return all
}
