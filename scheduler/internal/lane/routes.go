package lane

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// routes say which partition has which lane.
type routes struct {
	byPart []*Lane
	all    []*Lane // each once, in the order of their first partitions
}

func newRoutes(byPart []*Lane) *routes {
	r := &routes{byPart: byPart}
	for _, l := range byPart {
		if l != nil && !slices.Contains(r.all, l) {
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
	n.routes.Store(newRoutes(make([]*Lane, n.Ledger.Partitions())))
	n.route(ctx)
	var all sync.WaitGroup
	for _, l := range n.all() {
		all.Go(func() {
			if n.apart {
				l.failover.ask(ctx)
			} else {
				l.failover.named(server)
			}
			l.failover.begin()
		})
	}
	all.Wait()
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

// route gives partitions that have another master now its lane. A partition without one stays where it is. Begin calls it, and then only the watch of routes.
func (n *Lanes) route(ctx context.Context) {
	old, came := n.routes.Load(), make(map[*Lane]int)
	masters := make([]ledger.Master, len(old.byPart))
	for p, l := range old.byPart {
		m, err := n.Ledger.Master(ctx, p)
		if err != nil && l != nil {
			m = l.failover.at()
		}
		masters[p] = m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	byPart := slices.Clone(old.byPart)
	for p, m := range masters {
		from, e := byPart[p], &epoch{}
		if from != nil && m.Addr == from.addr {
			from.failover.is(m)
			continue
		}
		to := n.to(byPart, m)
		if from != nil {
			e = from.failover.give(p)
			came[to]++
		}
		to.failover.take(p, e)
		byPart[p] = to
	}
	for to, count := range came {
		n.Log.Info("partitions have another master", "master", to.addr, "partitions", count)
		wait.Signal(to.failover.look)
	}
	next := newRoutes(byPart)
	n.routes.Store(next)
	for _, l := range old.all {
		if !slices.Contains(next.all, l) {
			l.end() // what it still has goes on in the lanes of its partitions
		}
	}
}

// to is the lane of a master, which is made if it has none. The caller has the lock.
func (n *Lanes) to(byPart []*Lane, m ledger.Master) *Lane {
	for _, l := range byPart {
		if l != nil && l.addr == m.Addr {
			return l
		}
	}
	l := newLane(n, m)
	if n.terms != nil {
		l.start(n.terms)
	}
	return l
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
