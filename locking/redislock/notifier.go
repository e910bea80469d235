package redislock

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// notifier takes the calls for those of this process who wait in a line. It
// has one connection for them, on a Cluster one for each master concerned, while
// somebody waits and for a few seconds more. A call may be lost: whoever waits
// asks by itself now and then.
type notifier struct {
	client    redis.UniversalClient
	cluster   *redis.ClusterClient // client, or nil
	namespace string
	process   string // a name of our own
	logger    *slog.Logger

	mu      sync.Mutex
	waiting map[string]listener      // by owner
	wires   map[string]*subscription // by the master's address; "" when there is no Cluster
	warned  time.Time
}

// listener is one that waits.
type listener struct {
	name, channel string
	call          chan struct{} // capacity 1
}

func newNotifier(client redis.UniversalClient, namespace, process string, logger *slog.Logger) *notifier {
	s := &notifier{
		client: client, namespace: namespace, process: process, logger: logger,
		waiting: make(map[string]listener), wires: make(map[string]*subscription),
	}
	s.cluster, _ = client.(*redis.ClusterClient)
	return s
}

// channel is where lock name's scripts are to call, as line.lua reads it.
func (s *notifier) channel(name string) string {
	if s.cluster != nil {
		return "S" + shardChannel(s.namespace, name, s.process)
	}
	return "P" + callChannel(s.namespace, s.process)
}

// listen is Driver.Listen.
func (s *notifier) listen(name, owner string) (<-chan struct{}, func()) {
	call, channel := make(chan struct{}, 1), s.channel(name)[1:]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[owner] = listener{name, channel, call}
	return call, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, owner)
	}
}

// connect sees to it that calls for lock name arrive, from soon after it returns.
// Everybody concerned is woken then, because one may have been made before.
func (s *notifier) connect(ctx context.Context, name string) {
	key, client := "", s.client
	if s.cluster != nil {
		master, err := s.cluster.MasterForKey(ctx, lockKeys(s.namespace, name)[0])
		if err != nil {
			s.warn("no connection for calls", err)
			return // they ask by themselves, and come here again
		}
		key, client = master.Options().Addr, master
	}
	channel := s.channel(name)[1:]
	s.mu.Lock()
	w := s.wires[key]
	if w == nil {
		w = &subscription{
			board: s, key: key, channels: map[string]string{},
			sub: client.Subscribe(context.Background()), ended: make(chan struct{}),
		}
		w.ctx, w.end = context.WithCancel(context.Background())
		s.wires[key] = w
		go w.attend()
	}
	known := w.broken || w.channels[channel] != ""
	if !known {
		w.channels[channel] = name
	}
	s.mu.Unlock()
	if known {
		return
	}
	// A subscription that is being dialled for keeps its mutex, and minds no context of ours.
	done := make(chan error, 1)
	go func() { done <- w.subscribe(channel) }()
	select {
	case err := <-done:
		if err != nil {
			s.warn("no connection for calls", err)
		}
	case <-ctx.Done(): // whoever waits asks by itself meanwhile
	}
}

// call wakes the one who is called.
func (s *notifier) call(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[owner].wake()
}

// callAll wakes all who are called on a channel.
func (s *notifier) callAll(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.waiting {
		if l.channel == channel {
			l.wake()
		}
	}
}

// hangUp is Driver.Close.
func (s *notifier) close() {
	s.mu.Lock()
	wires := slices.Collect(maps.Values(s.wires))
	s.mu.Unlock()
	for _, w := range wires {
		w.end()
		_ = w.sub.Close() // wakes attend
		<-w.ended
	}
}

// names lists the locks for which somebody waits.
func (s *notifier) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool)
	for _, l := range s.waiting {
		names[l.name] = true
	}
	return slices.Collect(maps.Keys(names))
}

func (l listener) wake() {
	select {
	case l.call <- struct{}{}:
	default: // it is called already, or there is none
	}
}

// warn logs at most once in ten seconds: whoever waits goes on by asking.
func (s *notifier) warn(what string, err error) {
	s.mu.Lock()
	silent := time.Since(s.warned) < 10*time.Second
	if !silent {
		s.warned = time.Now()
	}
	s.mu.Unlock()
	if !silent {
		s.logger.Warn("calls for those who wait for locks do not come; they ask by themselves, once a second", "what", what, "error", err)
	}
}
