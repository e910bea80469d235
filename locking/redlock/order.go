package redlock

import (
	"context"
	"sync"
)

// callOrder keeps the order of this driver's acquisitions and releases at each master.
//
// A caller goes on when a majority has answered, and its other calls are still under way, over several
// connections: a release could arrive before the acquisition that it takes back, or an acquisition after the
// next holder's release. So each call follows its owner's last one, and an acquisition follows the last release
// of its lock. Acquisitions of one lock do not wait for each other: with many, most would time out.
type callOrder struct {
	mu     sync.Mutex
	queues map[orderKey]*orderQueue
}

// orderKey names a queue: the calls of one owner, or the releases of one lock.
type orderKey struct{ owner, released string }

// orderQueue is the end of a queue.
type orderQueue struct {
	last []chan struct{} // for each master, closed when the last call's turn is over
	open int             // turns that are not over; at 0 the queue is deleted
}

// turn is one call's place at one master.
type turn struct {
	before [2]<-chan struct{} // turns to wait for, or nil
	end    func()             // may be called again
}

// enter adds a call to its queues at each of n masters. The caller ends each turn.
func (l *callOrder) enter(name, owner string, n int, release bool) []turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns, own, others := make([]turn, n), l.queue(orderKey{owner: owner}, n), l.queues[orderKey{released: name}]
	if release {
		others = l.queue(orderKey{released: name}, n)
	}
	for i := range turns {
		mine := make(chan struct{})
		turns[i].before[0], own.last[i] = own.last[i], mine
		own.open++
		if others != nil {
			turns[i].before[1] = others.last[i]
		}
		if release {
			others.last[i] = mine
			others.open++
		}
		turns[i].end = sync.OnceFunc(func() { l.leave(name, owner, release, mine) })
	}
	return turns
}

// queue returns the queue of a key, and makes it if it is missing; l.mu is held.
func (l *callOrder) queue(of orderKey, n int) *orderQueue {
	if l.queues == nil {
		l.queues = make(map[orderKey]*orderQueue)
	}
	if l.queues[of] == nil {
		l.queues[of] = &orderQueue{last: make([]chan struct{}, n)}
	}
	return l.queues[of]
}

func (l *callOrder) leave(name, owner string, release bool, mine chan struct{}) {
	close(mine)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveQueue(orderKey{owner: owner})
	if release {
		l.leaveQueue(orderKey{released: name})
	}
}

// leaveQueue ends one turn of a queue; l.mu is held.
func (l *callOrder) leaveQueue(of orderKey) {
	in := l.queues[of]
	if in.open--; in.open == 0 {
		delete(l.queues, of)
	}
}

// wait returns nil when the turn has come, or ctx's error.
func (t turn) wait(ctx context.Context) error {
	for _, before := range t.before {
		if before == nil {
			continue
		}
		select {
		case <-before:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
