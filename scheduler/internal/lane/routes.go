package lane

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/ledger"
)

// routes say which partition has which lane.
type routes struct {
	byPart []*Lane
	all    []*Lane // each once, in the order of their first partitions
}

func newRoutes(byPart []*Lane) *routes {
	r := &routes{byPart: byPart}
	for _, l := range byPart {
		if !slices.Contains(r.all, l) {
			r.all = append(r.all, l)
		}
	}
	return r
}

// of is the lane of a partition.
func (n *Lanes) of(part int) *Lane { return n.routes.Load().byPart[part] }

// all are all lanes.
func (n *Lanes) all() []*Lane { return n.routes.Load().all }

// Begin reads the clock for the first time, makes the lanes, and trusts the servers that they lead to.
func (n *Lanes) Begin(ctx context.Context) error {
	server, err := n.sampleClock(ctx)
	if err != nil {
		return err
	}
	byPart, lanes := make([]*Lane, n.Ledger.Partitions()), make(map[string]*Lane)
	for p := range byPart {
		m, _ := n.Ledger.Master(ctx, p) // where none is known the lane has no master
		l := lanes[m.Addr]
		if l == nil {
			l = newLane(n, m)
			lanes[m.Addr] = l
		}
		l.failover.take(p, &epoch{})
		byPart[p] = l
	}
	r := newRoutes(byPart)
	if !n.apart {
		r.all[0].failover.is(server)
	} else {
		together(r.all, func(l *Lane) { l.failover.ask(ctx) })
	}
	for _, l := range r.all {
		l.failover.begin()
	}
	n.routes.Store(r)
	return nil
}

// watchRoutes looks, until ctx ends, which partition has which master.
func (n *Lanes) watchRoutes(ctx context.Context) {
	watch(ctx, n.changed, sampleEvery, func() time.Duration {
		n.route(ctx)
		for _, l := range n.all() {
			if l.breaker.open() || l.failover.partly.Load() {
				return assertEvery
			}
		}
		return sampleEvery
	})
}

// route gives partitions that have another master now its lane. A partition without one stays where it is.
func (n *Lanes) route(ctx context.Context) {
	byPart := slices.Clone(n.routes.Load().byPart)
	masters := make([]ledger.Master, len(byPart))
	for p, l := range byPart {
		m, err := n.Ledger.Master(ctx, p)
		if err != nil {
			m.Addr = l.addr
		} else if m.Addr == l.addr {
			l.failover.at(m)
		}
		masters[p] = m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old, came := n.routes.Load(), make(map[*Lane]int)
	for p, m := range masters {
		from := byPart[p]
		if m.Addr == from.addr {
			continue
		}
		to := n.to(byPart, m)
		to.failover.take(p, from.failover.give(p))
		byPart[p] = to
		came[to]++
		wait.Signal(to.failover.look)
	}
	for to, count := range came {
		n.Log.Info("partitions have another master", "master", to.addr, "partitions", count)
	}
	next := newRoutes(byPart)
	n.routes.Store(next)
	for _, l := range old.all {
		if !slices.Contains(next.all, l) {
			n.retire(l)
		}
	}
}

// to is the lane of a master, which is made if it has none. The caller has the lock.
func (n *Lanes) to(byPart []*Lane, m ledger.Master) *Lane {
	for _, l := range byPart {
		if l.addr == m.Addr {
			return l
		}
	}
	l := newLane(n, m)
	if n.asked {
		close(l.claims)
	}
	if n.closed {
		close(l.settler.stop)
	}
	l.start(n.terms)
	return l
}

// retire ends a lane without partitions. What it still has goes on in the lanes of its partitions. The caller has the lock.
func (n *Lanes) retire(l *Lane) {
	l.end()
	if !n.asked {
		close(l.claims)
	}
	if !n.closed {
		close(l.settler.stop)
	}
}

// watch does something until ctx ends: first after a while, then when it has said, and when it is signalled to.
func watch(ctx context.Context, look chan struct{}, first time.Duration, do func() time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-look:
			wait.For(ctx, lookPause) // many who ask are one
		}
		wait.Drop(look)
		timer.Reset(do())
	}
}
