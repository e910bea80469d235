package lane

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

const (
	// An overdue job that no living node holds is an orphan. It is looked at ever more rarely.
	orphanAfter   = 10 * time.Second
	orphanLongest = time.Hour
	// orphansMax is how many are put off in one sweep, orphansKnown of how many a node knows how often they were.
	orphansMax   = 32
	orphansKnown = 1024
)

// orphan is an overdue job that no living node holds.
type orphan struct {
	times         int
	cursor, until int64 // put off from and to, ms
}

// orphans are those that were put off, by job. They stay when partitions change lanes.
type orphans struct {
	mu  sync.Mutex
	all map[string]orphan
}

func (o *orphans) get(job string) orphan {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[job]
}

// put notes an orphan. When there are too many all others are forgotten: some may have been removed long ago.
func (o *orphans) put(job string, as orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.all[job]; o.all == nil || !known && len(o.all) >= orphansKnown {
		o.all = make(map[string]orphan)
	}
	o.all[job] = as
}

func (o *orphans) forget(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, job)
}

func (o *orphans) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.all))
}

// adopted brings forward the look at orphans that somebody holds again, who need not have registered them anew: the network was away, and
// their overdue ticks would be nobody's until then.
func (s *sweep) adopted(ctx context.Context, crowd Nodes) {
	budget, orphans := orphansMax, &s.l.lanes.orphans
	for _, name := range orphans.names() {
		if s.l.lanes.of(s.l.Ledger.Partition(name)) != s.l || !crowd.Knows(name) {
			continue
		}
		if budget--; budget < 0 {
			return
		}
		o := orphans.get(name)
		s.ask(ctx, name, func() error {
			err := s.l.Ledger.Postpone(ctx, ledger.Late{Job: name, Cursor: o.until}, o.cursor)
			if err == nil {
				orphans.forget(name)
			}
			return err
		})
	}
}

// held leaves out the orphans among overdue jobs, and puts off the next look at them.
func (s *sweep) held(ctx context.Context, late []ledger.Late, now int64) []ledger.Late {
	crowd, budget, orphans := s.l.Nodes, orphansMax, &s.l.lanes.orphans
	s.adopted(ctx, crowd)
	return slices.DeleteFunc(late, func(l ledger.Late) bool {
		o := orphans.get(l.Job)
		times := o.times
		if times == 0 && now-l.Cursor < orphanAfter.Milliseconds() || crowd.Knows(l.Job) {
			return false
		}
		if budget--; budget < 0 {
			return true
		}
		if times == 0 {
			o.cursor = l.Cursor
			s.l.Log.Warn("no living node holds this job; it is looked at ever more rarely until one does, or until `jobs remove`", "job", l.Job)
		}
		o.times, o.until = times+1, now+min(orphanLongest, orphanAfter<<min(times, 10)).Milliseconds()
		orphans.put(l.Job, o)
		s.ask(ctx, l.Job, func() error { return s.l.Ledger.Postpone(ctx, l, o.until) })
		return true
	})
}
