package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// A waiter has an ephemeral sequential node, in a session of its own that lasts
// locking.QueueTimeout: when its process dies or is cut off, its place is free after that time,
// whatever the locks' TTL.

// waiting is a driver's record of its waiters.
type waiting struct {
	mu      sync.Mutex
	waiters map[key]*waiter     // the listening ones
	places  map[key]*time.Timer // ends a place whose owner sends no request
}

// waiter is one Listen.
type waiter struct {
	notified chan struct{} // capacity 1
	watching string        // the path of the node before, while it is watched
	ctx      context.Context
	stop     context.CancelFunc
	watches  sync.WaitGroup // its goroutines
}

// Listen implements locking.Notifier.
func (d *Driver) Listen(name, owner string) (notified <-chan struct{}, stop func()) {
	w := &waiter{notified: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(d.client.ctx)
	k, q := key{name, owner}, &d.waiting
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiters == nil {
		q.waiters = make(map[key]*waiter)
	}
	q.waiters[k] = w
	return w.notified, func() {
		w.stop()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.waiters[k] == w {
			delete(q.waiters, k)
		}
	}
}

// Close implements locking.Notifier: it ends the watches. The connections end with the Client.
func (d *Driver) Close() {
	q := &d.waiting
	q.mu.Lock()
	waiters := q.waiters
	q.waiters = nil
	q.mu.Unlock()
	for _, w := range waiters {
		w.stop()
		w.watches.Wait()
	}
}

// waitSession returns the session of the waiters' nodes, for requests about any lock.
func (d *Driver) waitSession() (*session, error) { return d.session(locking.QueueTimeout / 3 * 2) }

// join gives an owner a place, and returns errAgain for another look. A place from an earlier request, whose reply was
// lost, was seen in the look before.
func (d *Driver) join(ctx context.Context, k key) error {
	s, err := d.waitSession()
	if err != nil {
		return err
	}
	d.keepPlace(k) // before the request: its reply may be lost
	err = create(ctx, s, d.lockPath(k.name)+"/"+waitName(k.owner), nil, zk.FlagEphemeralSequential)
	if err == nil || changed(err) {
		return errAgain
	}
	return err
}

// leave removes an owner's places.
func (d *Driver) leave(ctx context.Context, k key) error {
	s, err := d.waitSession()
	if err != nil {
		return err
	}
	v, err := d.readView(ctx, s, k.name, false) // the session sees its own writes
	if err != nil {
		return err
	}
	for _, p := range v.queue {
		if p.owner != k.owner {
			continue
		}
		if err := remove(ctx, s, d.lockPath(k.name)+"/"+p.node); err != nil && !changed(err) {
			return err
		}
	}
	d.forgetPlace(k)
	return nil
}

// keepPlace begins another locking.QueueTimeout, after which the place is given up.
func (d *Driver) keepPlace(k key) {
	q := &d.waiting
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.places[k]; t != nil {
		t.Reset(locking.QueueTimeout)
		return
	}
	if q.places == nil {
		q.places = make(map[key]*time.Timer)
	}
	q.places[k] = time.AfterFunc(locking.QueueTimeout, func() {
		d.client.run(func() {
			d.untilAnswered(func(ctx context.Context) error { return d.leave(ctx, k) })
		})
	})
}

// forgetPlace is called when the owner has no place in ZooKeeper any more.
func (d *Driver) forgetPlace(k key) {
	q := &d.waiting
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.places[k]; t != nil {
		t.Stop()
		delete(q.places, k)
	}
}

// watch notifies a waiter when the node before has gone.
func (d *Driver) watch(k key, before string) error {
	s, err := d.waitSession()
	if err != nil {
		return err
	}
	q := &d.waiting
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.waiters[k]
	if w == nil || w.watching == before {
		return nil
	}
	w.watching = before
	w.watches.Add(1)
	if !d.client.run(func() {
		defer w.watches.Done()
		s.awaitGone(w.ctx, before)
		q.mu.Lock()
		if w.watching == before {
			w.watching = ""
		}
		q.mu.Unlock()
		select {
		case w.notified <- struct{}{}:
		default: // notified already
		}
	}) {
		w.watches.Done()
	}
	return nil
}

// awaitGone returns when a node has gone, or cannot be watched. A renewal changes the node's data, which is no reason.
func (s *session) awaitGone(ctx context.Context, path string) {
	for {
		changes, err := call(ctx, s, "watch", func(c *zk.Conn) (<-chan zk.Event, error) {
			_, _, changes, err := c.GetW(path)
			return changes, err
		})
		if err != nil {
			return
		}
		select {
		case e := <-changes:
			if e.Type != zk.EventNodeDataChanged {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// untilAnswered calls f until ZooKeeper has answered or the client is closed.
func (d *Driver) untilAnswered(f func(ctx context.Context) error) {
	const limit, pause = time.Second, 100 * time.Millisecond
	for {
		ctx, cancel := context.WithTimeout(d.client.ctx, limit)
		err := f(ctx)
		cancel()
		if !errors.Is(err, locking.ErrUnreachable) {
			return
		}
		select {
		case <-d.client.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
