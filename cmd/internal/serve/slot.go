package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/metrics"
	"github.com/escapement/escapement/scheduler/notify"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// endpoint is a Redis that a node may work in.
type endpoint struct {
	client redis.UniversalClient
	name   string // for messages; never with a password
}

// nodeSlot is a node's place in a process. When the namespace moves to another Redis, another node
// takes the place.
type nodeSlot struct {
	l        *config.Loaded
	cfg      scheduler.Config
	at, next endpoint // next: where the namespace may move; no client: nowhere
	node     atomic.Pointer[scheduler.Node]
	api      atomic.Pointer[opshttp.Server] // of the Redis that the slot is at
	ops      atomic.Pointer[ops.Client]
	metrics  *metrics.Collector              // of the node that is there now
	notifier atomic.Pointer[notify.Notifier] // the same; nil without targets

	changing sync.Mutex // guards jobs, refused, the revision of cfg, and node while it is replaced
	jobs     []jobs.Job // as last loaded
	refused  string     // where the files that were read later are wrong; "" when they were not
}

// newNodeSlot makes the first node of a slot.
func newNodeSlot(at, next endpoint, l *config.Loaded, cfg scheduler.Config, m *metrics.Collector) (*nodeSlot, error) {
	cfg.Hooks = scheduler.JoinHooks(m.Hooks(), cfg.Hooks)
	for _, p := range []endpoint{at, next} {
		if p.client != nil {
			p.client.AddHook(m.RedisHook())
		}
	}
	s := &nodeSlot{l: l, cfg: cfg, at: at, next: next, metrics: m, jobs: l.JobList}
	return s, s.start()
}

// start makes a node for the Redis that the slot is at.
func (s *nodeSlot) start() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	reg, err := registry(s.l, s.jobs)
	if err != nil {
		return err
	}
	cfg := s.cfg
	if s.next.client != nil {
		cfg.Next = s.next.client
	}
	node, err := scheduler.New(s.at.client, reg, cfg)
	if err != nil {
		return s.l.Refused(err)
	}
	client, err := ops.New(s.at.client, s.l.Namespace)
	if err != nil {
		return s.l.Refused(err)
	}
	if cfg := s.l.NotifyConfig; len(cfg.Targets) > 0 {
		cfg.Node, cfg.Logger = node.Name(), s.cfg.Logger
		notifier, err := notify.New(s.at.client, cfg)
		if err != nil {
			return s.l.Refused(err)
		}
		s.notifier.Store(notifier)
	}
	node.SetRefused(s.refused)
	s.node.Store(node)
	s.ops.Store(client)
	s.metrics.Watch(node)
	s.api.Store(opshttp.New(client, opshttp.Config{Access: s.l.HTTP.Access(), Version: thisBuild().Version, Node: node.Name(), Logger: cfg.Logger}))
	return nil
}

// change changes the node's jobs to the jobs of a reloaded configuration. After a move the next
// node has them too.
func (s *nodeSlot) change(all []jobs.Job, c scheduler.Change) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.node.Load().Change(c); err != nil && !errors.Is(err, scheduler.ErrStopping) {
		return err
	}
	s.jobs, s.cfg.Revision = all, cmp.Or(c.Revision, s.cfg.Revision)
	return nil
}

// refuse has the node announce where refused files are wrong, "" when they are accepted again.
// After a move the next node announces it.
func (s *nodeSlot) refuse(where string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.refused = where
	s.node.Load().SetRefused(where)
}

// ServeHTTP serves the API.
func (s *nodeSlot) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.api.Load().ServeHTTP(w, r) }

// guard lets through clients with a role, see api.Server.Guard.
func (s *nodeSlot) guard(role ops.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.api.Load().Guard(role, next).ServeHTTP(w, r) })
}

// Name is the node's name.
func (s *nodeSlot) Name() string { return s.node.Load().Name() }

// Registered reports whether the node that is there now has joined.
func (s *nodeSlot) Registered() bool { return s.node.Load().Registered() }

// Ready returns the state of the current node.
func (s *nodeSlot) Ready() error { return s.node.Load().Ready() }

// run runs the node, and after a move of the namespace the node at the other side: there and back,
// if need be.
func (s *nodeSlot) run(ctx context.Context) error {
	for ctx.Err() == nil {
		readMetrics := func(ctx context.Context) error { return s.metrics.Run(ctx, s.ops.Load()) }
		parts := []func(context.Context) error{s.node.Load().Run, s.api.Load().Run, readMetrics}
		if n := s.notifier.Load(); n != nil {
			parts = append(parts, n.Run)
		}
		if err := together(ctx, parts...); !errors.Is(err, scheduler.ErrMoved) {
			return err
		}
		if ctx.Err() == nil {
			if err := s.follow(); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow makes the node that goes on in the other Redis.
func (s *nodeSlot) follow() error {
	s.at, s.next = s.next, s.at
	// It was there a moment ago. The number of partitions may be another one there, and is stored.
	s.cfg.WaitForRedis, s.cfg.Partitions = true, 0
	if err := s.start(); err != nil {
		return err
	}
	s.cfg.Logger.Info("the namespace has moved: going on in the other Redis", "node", s.Name(), "redis", s.at.name, "before", s.next.name)
	return nil
}

// close closes the clients.
func (s *nodeSlot) close() {
	for _, p := range []endpoint{s.at, s.next} {
		if p.client != nil {
			_ = p.client.Close() // nothing is on its way any more
		}
	}
}
