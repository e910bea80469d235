package redislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// callCheck is after how much silence a connection for calls is asked whether
	// it lives; after twice that without an answer it is given up.
	callCheck = 2 * time.Second

	// callPause is the pause before a broken one is replaced. Those who wait ask
	// by themselves meanwhile.
	callPause = 500 * time.Millisecond
)

// wire is one connection for calls. It ends when nobody has waited for some
// seconds; when it breaks, those who wait are connected anew.
type subscription struct {
	board *notifier
	key   string
	sub   *redis.PubSub
	ctx   context.Context // ended by hangUp: a dial under way holds the subscription's mutex
	end   context.CancelFunc
	ended chan struct{} // closed when attend is

	// Guarded by the board's mu.
	channels map[string]string // those it listens to, and for which lock
	broken   bool
}

func (w *subscription) subscribe(channel string) error {
	return w.soon(func(ctx context.Context) error {
		if w.board.cluster != nil {
			return w.sub.SSubscribe(ctx, channel)
		}
		return w.sub.Subscribe(ctx, channel)
	})
}

// soon bounds f: whatever is asked of a subscription may be what dials for it, and a server that hangs then would hold its
// mutex, and hangUp, for as long as the client's timeouts are, or for ever where it has none.
func (w *subscription) soon(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.ctx, callCheck)
	defer cancel()
	return f(ctx)
}

// attend passes on what comes over the wire until it breaks or is not needed
// any more.
func (w *subscription) attend() {
	defer close(w.ended)
	defer w.end()
	err := w.hear()
	_ = w.sub.Close() // nothing more is wanted of it
	if err == nil {
		return
	}
	w.board.breakDown(w, true)
	select {
	case <-time.After(callPause):
		w.board.warn("the connection for calls broke", err)
		w.board.breakDown(w, false)
		w.board.reconnect()
	case <-w.ctx.Done():
		w.board.breakDown(w, false)
	}
}

// hear returns nil when nobody waits any more.
func (w *subscription) hear() error {
	silent, looked := 0, time.Now()
	for {
		var msg any
		err := w.soon(func(ctx context.Context) (err error) {
			msg, err = w.sub.ReceiveTimeout(ctx, callCheck)
			return err
		})
		var late net.Error
		switch {
		case err == nil:
			silent = 0
		case !errors.As(err, &late) || !late.Timeout() || silent > 0:
			return err
		default:
			silent++
			if err := w.soon(func(ctx context.Context) error { return w.sub.Ping(ctx) }); err != nil {
				return err
			}
		}
		switch msg := msg.(type) {
		case *redis.Message:
			w.board.call(msg.Payload)
		case *redis.Subscription:
			if msg.Kind == "sunsubscribe" && w.board.listens(w, msg.Channel) {
				return errors.New("the slot of " + msg.Channel + " has moved")
			}
			w.board.callAll(msg.Channel)
		}
		if time.Since(looked) < callCheck {
			continue
		}
		looked = time.Now()
		unused, needed := w.board.tidy(w)
		if !needed {
			return nil
		}
		if len(unused) > 0 {
			if err := w.soon(func(ctx context.Context) error { return w.sub.SUnsubscribe(ctx, unused...) }); err != nil {
				return err
			}
		}
	}
}

// tidy forgets the channels on which nobody waits. When that is all of them, the
// wire is not needed, and nobody is given it any more.
func (s *notifier) tidy(w *subscription) (unused []string, needed bool) {
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
		delete(s.wires, w.key)
		return nil, false
	}
	return unused, true
}

// breakDown takes a broken wire out of use: it is kept in its place at first, so
// that no other is made at once.
func (s *notifier) breakDown(w *subscription, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.broken = true
	if !keep && s.wires[w.key] == w {
		delete(s.wires, w.key)
	}
}

// reconnect makes the wires anew that those who wait need.
func (s *notifier) reconnect() {
	for _, name := range s.names() {
		ctx, cancel := context.WithTimeout(context.Background(), callCheck)
		s.connect(ctx, name)
		cancel()
	}
}

// listens reports whether somebody is to be called on the wire's channel.
func (s *notifier) listens(w *subscription, channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.channels[channel] != ""
}
