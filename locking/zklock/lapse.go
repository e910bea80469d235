package zklock

import (
	"context"
	"sync"
	"time"
)

// A session ends the leases of a process that is dead or cut off. The leases of a living one end here: each has
// a timer, which removes the lock's node after TTL and Delay without a renewal.

// lease is a lock that this driver may hold.
type lease struct {
	key     key
	session *session
	timer   *time.Timer
	ends    time.Time // TTL and Delay after the last request that was answered
	busy    int       // acquisitions and renewals under way, which may put off the end
	over    bool      // the node is being removed, and nothing can prevent the removal
}

type leases struct {
	mu  sync.Mutex
	all map[key]*lease
}

// begin returns the lease for an acquisition that is about to be sent. It ends at ends unless end puts that off. nil: an
// earlier lease of the owner is being removed. fresh: there was none
// before. The caller calls end.
func (d *Driver) begin(s *session, k key, ends time.Time) (l *lease, fresh bool) {
	ls := &d.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l = ls.all[k]
	fresh = l == nil
	if fresh {
		if ls.all == nil {
			ls.all = make(map[key]*lease)
		}
		l = &lease{key: k, session: s, ends: ends}
		l.timer = time.AfterFunc(time.Until(ends), func() { d.lapse(l) })
		ls.all[k] = l
		s.held.Add(1)
	}
	if l.over || l.session != s {
		return nil, false
	}
	l.busy++
	return l, fresh
}

// renewing is begin for a renewal. nil: the owner has no lease.
func (ls *leases) renewing(k key) *lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[k]
	if l == nil || l.over {
		return nil
	}
	l.busy++
	return l
}

// end ends a use of l that begin or renewing began. A later time for ends puts off the end of the
// lease.
func (ls *leases) end(l *lease, ends time.Time) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.busy--
	if ends.After(l.ends) {
		l.ends = ends
	}
	if ls.all[l.key] == l {
		l.timer.Reset(time.Until(l.ends))
	}
}

// get returns the session of a lease; nil: the owner has none.
func (ls *leases) get(k key) *lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.all[k]
}

// remove forgets a lease that is not in ZooKeeper any more.
func (ls *leases) remove(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all[l.key] == l {
		delete(ls.all, l.key)
		l.timer.Stop()
		l.session.held.Add(-1)
	}
}

// lapse runs when l's timer ends. It removes the node if the lease is over.
func (d *Driver) lapse(l *lease) {
	ls := &d.leases
	ls.mu.Lock()
	over := ls.all[l.key] == l && !l.over && l.busy == 0
	if left := time.Until(l.ends); over && left > 0 {
		l.timer.Reset(left)
		over = false
	}
	l.over = l.over || over
	ls.mu.Unlock()
	if over {
		d.client.run(func() {
			d.untilAnswered(func(ctx context.Context) error {
				return remove(ctx, l.session, d.heldPath(l.key.name, l.key.owner))
			})
			ls.remove(l)
		})
	}
}
