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

// notifier receives the notifications for the queued waiters of this process. It has one
// connection, on a Cluster one for each master concerned, while there are waiters and for a few
// seconds longer. A notification may be lost: each waiter also polls.
type notifier struct {
	client    redis.UniversalClient
	cluster   *redis.ClusterClient // client, or nil
	namespace string
	process   string // unique, part of the channels' names
	logger    *slog.Logger

	mu            sync.Mutex
	waiting       map[string]waiter        // by owner
	subscriptions map[string]*subscription // by the master's address; "" without a Cluster
	warned        time.Time
}

// waiter is a queued acquisition.
type waiter struct {
	name, channel string
	notified      chan struct{} // capacity 1
}

func newNotifier(client redis.UniversalClient, namespace, process string, logger *slog.Logger) *notifier {
	s := &notifier{
		client: client, namespace: namespace, process: process, logger: logger,
		waiting: make(map[string]waiter), subscriptions: make(map[string]*subscription),
	}
	s.cluster, _ = client.(*redis.ClusterClient)
	return s
}

// channel returns the channel for notifications of lock name, as queue.lua reads it.
func (s *notifier) channel(name string) string {
	if s.cluster != nil {
		return "S" + shardChannel(s.namespace, name, s.process)
	}
	return "P" + processChannel(s.namespace, s.process)
}

// listen implements Driver.Listen.
func (s *notifier) listen(name, owner string) (<-chan struct{}, func()) {
	notified, channel := make(chan struct{}, 1), s.channel(name)[1:]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[owner] = waiter{name, channel, notified}
	return notified, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, owner)
	}
}

// connect subscribes to the notifications for lock name. They arrive from soon after it returns. All waiters
// of the channel are notified then, because a notification may have been sent before.
func (s *notifier) connect(ctx context.Context, name string) {
	key, client := "", s.client
	if s.cluster != nil {
		master, err := s.cluster.MasterForKey(ctx, lockKeys(s.namespace, name)[0])
		if err != nil {
			s.warn("find the master of lock "+name, err)
			return // the next request of the waiter tries again
		}
		key, client = master.Options().Addr, master
	}
	channel := s.channel(name)[1:]
	s.mu.Lock()
	w := s.subscriptions[key]
	if w == nil {
		w = &subscription{
			notifier: s, key: key, channels: map[string]string{},
			sub: client.Subscribe(context.Background()), ended: make(chan struct{}),
		}
		w.ctx, w.end = context.WithCancel(context.Background())
		s.subscriptions[key] = w
		go w.run()
	}
	known := w.broken || w.channels[channel] != ""
	if !known {
		w.channels[channel] = name
	}
	s.mu.Unlock()
	if known {
		return
	}
	// While go-redis dials for a subscription it holds the subscription's mutex and ignores ctx.
	done := make(chan error, 1)
	go func() { done <- w.subscribe(channel) }()
	select {
	case err := <-done:
		if err != nil {
			s.warn("subscribe", err)
		}
	case <-ctx.Done():
	}
}

// notify notifies one waiter.
func (s *notifier) notify(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[owner].notify()
}

// notifyAll notifies all waiters of a channel.
func (s *notifier) notifyAll(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.waiting {
		if l.channel == channel {
			l.notify()
		}
	}
}

// close implements Driver.Close.
func (s *notifier) close() {
	s.mu.Lock()
	subscriptions := slices.Collect(maps.Values(s.subscriptions))
	s.mu.Unlock()
	for _, w := range subscriptions {
		w.end()
		_ = w.sub.Close() // ends the receive of run
		<-w.ended
	}
}

// names returns the locks that have waiters in this process.
func (s *notifier) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool)
	for _, l := range s.waiting {
		names[l.name] = true
	}
	return slices.Collect(maps.Keys(names))
}

func (l waiter) notify() {
	select {
	case l.notified <- struct{}{}:
	default: // notified already, or the zero waiter
	}
}

// warn logs at most once in ten seconds.
func (s *notifier) warn(op string, err error) {
	s.mu.Lock()
	due := time.Since(s.warned) >= 10*time.Second
	if due {
		s.warned = time.Now()
	}
	s.mu.Unlock()
	if due {
		s.logger.Warn("no notifications for waiting locks; waiters poll once a second", "op", op, "error", err)
	}
}
