package redislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// pingAfter is how long a connection may receive nothing before it is pinged. Without an answer for the
	// same time it counts as broken.
	pingAfter = 2 * time.Second

	// reconnectPause is the pause before a broken connection is replaced.
	reconnectPause = 500 * time.Millisecond
)

// subscription is one connection for notifications. It ends some seconds after the last waiter; a broken one
// is replaced while there are waiters.
type subscription struct {
	notifier *notifier
	key      string // in notifier.subscriptions
	sub      *redis.PubSub
	ctx      context.Context // ended by notifier.close: a dial under way holds the mutex of sub
	end      context.CancelFunc
	ended    chan struct{} // closed when run has ended

	// The notifier's mu guards these.
	channels map[string]string // channel to lock
	broken   bool
}

func (w *subscription) subscribe(channel string) error {
	return w.bounded(func(ctx context.Context) error {
		if w.notifier.cluster != nil {
			return w.sub.SSubscribe(ctx, channel)
		}
		return w.sub.Subscribe(ctx, channel)
	})
}

// bounded limits f to pingAfter. Each call of sub may dial, and with a hung server it would hold the mutex of
// sub, and notifier.close, for the client's timeouts.
func (w *subscription) bounded(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.ctx, pingAfter)
	defer cancel()
	return f(ctx)
}

// run receives notifications until the connection breaks or has no waiters. It replaces a broken connection.
func (w *subscription) run() {
	defer close(w.ended)
	defer w.end()
	err := w.receive()
	_ = w.sub.Close()
	if err == nil {
		return
	}
	w.notifier.markBroken(w, true)
	select {
	case <-time.After(reconnectPause):
		w.notifier.warn("receive", err)
		w.notifier.markBroken(w, false)
		w.notifier.reconnect()
	case <-w.ctx.Done():
		w.notifier.markBroken(w, false)
	}
}

// receive passes notifications on. It returns nil when there are no waiters any more.
func (w *subscription) receive() error {
	pinged, checked := false, time.Now()
	for {
		var msg any
		err := w.bounded(func(ctx context.Context) (err error) {
			msg, err = w.sub.ReceiveTimeout(ctx, pingAfter)
			return err
		})
		var late net.Error
		switch {
		case err == nil:
			pinged = false
		case !errors.As(err, &late) || !late.Timeout() || pinged:
			return err
		default:
			pinged = true
			if err := w.bounded(func(ctx context.Context) error { return w.sub.Ping(ctx) }); err != nil {
				return err
			}
		}
		switch msg := msg.(type) {
		case *redis.Message:
			w.notifier.notify(msg.Payload)
		case *redis.Subscription:
			if msg.Kind == "sunsubscribe" && w.notifier.hasChannel(w, msg.Channel) {
				return errors.New("the slot of " + msg.Channel + " has moved")
			}
			w.notifier.notifyAll(msg.Channel)
		}
		if time.Since(checked) < pingAfter {
			continue
		}
		checked = time.Now()
		unused, needed := w.notifier.dropUnused(w)
		if !needed {
			return nil
		}
		if len(unused) > 0 {
			if err := w.bounded(func(ctx context.Context) error { return w.sub.SUnsubscribe(ctx, unused...) }); err != nil {
				return err
			}
		}
	}
}

// dropUnused removes the channels without waiters, and returns them. Not needed: no channel remains, and the
// notifier does not use the subscription any more.
func (s *notifier) dropUnused(w *subscription) (unused []string, needed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[string]bool)
	for _, l := range s.waiting {
		wanted[s.channel(l.name)[1:]] = true
	}
	for channel := range w.channels {
		if !wanted[channel] {
			unused = append(unused, channel)
			delete(w.channels, channel)
		}
	}
	if len(w.channels) == 0 {
		delete(s.subscriptions, w.key)
		return nil, false
	}
	return unused, true
}

// markBroken takes a broken subscription out of use. With keep it stays in its place, so that connect does not
// dial again at once.
func (s *notifier) markBroken(w *subscription, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.broken = true
	if !keep && s.subscriptions[w.key] == w {
		delete(s.subscriptions, w.key)
	}
}

// reconnect subscribes again for all waiters.
func (s *notifier) reconnect() {
	for _, name := range s.names() {
		ctx, cancel := context.WithTimeout(context.Background(), pingAfter)
		s.connect(ctx, name)
		cancel()
	}
}

// hasChannel reports whether w is subscribed to channel for a lock.
func (s *notifier) hasChannel(w *subscription, channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.channels[channel] != ""
}
