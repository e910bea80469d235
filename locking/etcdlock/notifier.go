package etcdlock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// notifier watches keys for the queued waiters of this process. Each waiter watches the key before
// its own in the queue, or the holder's, and its own key. A waiter also polls.
type notifier struct {
	client  *clientv3.Client
	logger  *slog.Logger
	running sync.WaitGroup // one goroutine for each watch

	mu      sync.Mutex // guards the waiters too
	waiters map[waiterKey]*waiter
	warned  time.Time
}

type waiterKey struct{ name, owner string }

// waiter is a queued acquisition.
type waiter struct {
	notified chan struct{} // capacity 1
	created  int64         // see acquisition.created
	watched  string        // the key before; "": no watch
	end      context.CancelFunc
	hope     bool // the key before has gone, or the waiter has sent no request yet
	stopped  bool
}

func newNotifier(client *clientv3.Client, logger *slog.Logger) *notifier {
	return &notifier{client: client, logger: logger, waiters: make(map[waiterKey]*waiter)}
}

// Listen implements locking.Notifier.
func (d *Driver) Listen(name, owner string) (<-chan struct{}, func()) {
	n, key := d.notifier, waiterKey{name, owner}
	w := &waiter{notified: make(chan struct{}, 1), hope: true}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiters[key] = w
	return w.notified, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		w.stopped = true
		w.endWatch()
		if n.waiters[key] == w {
			delete(n.waiters, key)
		}
	}
}

// Close implements locking.Notifier.
func (d *Driver) Close() {
	n := d.notifier
	n.mu.Lock()
	for _, w := range n.waiters {
		w.endWatch()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// get returns the waiter that listens; nil: there is none.
func (n *notifier) get(name, owner string) *waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiters[waiterKey{name, owner}]
}

// state returns the finding of the waiter's last request. hope: the lock may be free.
func (n *notifier) state(w *waiter) (created int64, hope bool) {
	if w == nil {
		return 0, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	hope, w.hope = w.hope, false
	return w.created, hope
}

// placed notes the revision that created the waiter's key; 0: it has none.
func (n *notifier) placed(w *waiter, created int64) {
	if w == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w.created = created
}

// watch notifies w when the key before, or its own, is deleted.
func (n *notifier) watch(w *waiter, before, own string) {
	if w == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.stopped || w.watched == before {
		return
	}
	w.endWatch()
	ctx, end := context.WithCancel(context.Background())
	w.watched, w.end = before, end
	n.running.Go(func() {
		defer end()
		err := n.awaitDeleted(ctx, before, own)
		n.watchEnded(ctx, w, err)
	})
}

// awaitDeleted returns when one of the two keys was deleted. An error means that the watch ended
// before.
//
// A watch that begins in the past is served late, once in 100 ms. So the watches begin now, and the keys are read when
// the watches exist.
func (n *notifier) awaitDeleted(ctx context.Context, before, own string) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	o := []clientv3.OpOption{clientv3.WithCreatedNotify(), clientv3.WithFilterPut()}
	first, second := n.client.Watch(ctx, before, o...), n.client.Watch(ctx, own, o...)
	for created := 0; ; {
		var reply clientv3.WatchResponse
		var open bool
		select {
		case reply, open = <-first:
		case reply, open = <-second:
		}
		switch {
		case reply.Err() != nil:
			return reply.Err()
		case !open:
			return fmt.Errorf("the watch has ended: %w", context.Cause(ctx))
		case len(reply.Events) > 0:
			return nil
		case reply.Created:
			if created++; created < 2 {
				continue
			}
			if there, err := n.both(ctx, before, own); err != nil || !there {
				return err
			}
		}
	}
}

// both reports whether both keys are there.
func (n *notifier) both(ctx context.Context, before, own string) (bool, error) {
	reply, err := n.client.Txn(ctx).Then(
		clientv3.OpGet(before, clientv3.WithCountOnly()), clientv3.OpGet(own, clientv3.WithCountOnly())).Commit()
	if err != nil {
		return false, err
	}
	for _, answer := range reply.Responses {
		if answer.GetResponseRange().GetCount() == 0 {
			return false, nil
		}
	}
	return true, nil
}

// watchEnded notifies the waiter, unless the watch was ended for another.
func (n *notifier) watchEnded(ctx context.Context, w *waiter, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.watched = "" // the next request watches again
	if err != nil {
		if time.Since(n.warned) >= 10*time.Second {
			n.warned = time.Now()
			n.logger.Warn("no notifications for waiting locks; waiters poll once a second", "error", err)
		}
		return
	}
	w.hope = true
	select {
	case w.notified <- struct{}{}:
	default:
	}
}

// endWatch ends the watch, if there is one.
func (w *waiter) endWatch() {
	if w.end != nil {
		w.end()
	}
	w.watched, w.end = "", nil
}
