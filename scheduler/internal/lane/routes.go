package lane

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// routes map partitions to lanes.
type routes struct {
	byPart []*Lane
	all    []*Lane // each once, ordered by its first partition
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

// link is the link to a partition's master.
func (n *Lanes) link(part int) *link { return n.of(part).link }

// all are the lanes.
func (n *Lanes) all() []*Lane { return n.routes.Load().all }

// Begin samples the clock, makes the lanes, and trusts the servers that it finds.
func (n *Lanes) Begin(ctx context.Context) error {
	sample, err := n.sampleClock(ctx)
	if err != nil {
		return err
	}
	n.routes.Store(newRoutes(make([]*Lane, n.Ledger.Partitions())))
	n.route(ctx)
	var all sync.WaitGroup
	for _, l := range n.all() {
		all.Go(func() {
			at := sample
			if n.clustered {
				at, _ = l.epochs.Identify(ctx)
			}
			l.epochs.Join(at)
		})
	}
	all.Wait()
	return nil
}

// watchRoutes looks for partitions with another master until ctx ends.
func (n *Lanes) watchRoutes(ctx context.Context) {
	watch(ctx, n.routesChanged, failover.SampleEvery, func() time.Duration {
		n.route(ctx)
		for _, l := range n.all() {
			if l.breaker.open() || !l.epochs.Identified() {
				return failover.AssertEvery
			}
		}
		return failover.SampleEvery
	})
}

// route gives partitions whose master has changed the lane of the new one. A partition without a
// master stays where it is. Begin calls it first, then only watchRoutes.
func (n *Lanes) route(ctx context.Context) {
	old, came := n.routes.Load(), make(map[*Lane]int)
	masters := make([]ledger.Master, len(old.byPart))
	for p, l := range old.byPart {
		m, err := n.Ledger.Master(ctx, p)
		if err != nil && l != nil {
			m = l.epochs.Route()
		}
		masters[p] = m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	byPart := slices.Clone(old.byPart)
	for p, m := range masters {
		from, e := byPart[p], &failover.Epoch{}
		if from != nil && m.Addr == from.addr {
			from.epochs.SetRoute(m)
			continue
		}
		to := n.laneFor(byPart, m)
		if from != nil {
			e = from.epochs.Remove(p)
			came[to]++
		}
		to.epochs.Add(p, e)
		byPart[p] = to
	}
	for to, count := range came {
		n.Log.Info("partitions have another master", "master", to.addr, "partitions", count)
		wait.Signal(to.check)
	}
	next := newRoutes(byPart)
	n.routes.Store(next)
	for _, l := range old.all {
		if !slices.Contains(next.all, l) {
			l.stop() // its work goes on in the lanes of its partitions
		}
	}
}

// laneFor is the lane of a master, made if there is none. The caller holds the lock.
func (n *Lanes) laneFor(byPart []*Lane, m ledger.Master) *Lane {
	for _, l := range byPart {
		if l != nil && l.addr == m.Addr {
			return l
		}
	}
	l := n.newLane(m)
	if n.terms != nil {
		l.start(n.terms)
	}
	return l
}
