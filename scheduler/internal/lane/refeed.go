package lane

import (
	"context"
	"slices"
	"sync"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// knownBackfills are the backfills that are under way, as this node saw them last: a Redis that has lost them gets them back.
type knownBackfills struct {
	mu  sync.Mutex
	all map[int]map[string]ledger.Backfill // by partition and job
}

// missing are the backfills of a partition that were under way, and that a sweep has not found.
func (k *knownBackfills) missing(part int, found []ledger.Backfill) (list []ledger.Backfill) {
	return slices.DeleteFunc(k.of(part), func(b ledger.Backfill) bool {
		return slices.ContainsFunc(found, func(other ledger.Backfill) bool { return other.Job == b.Job })
	})
}

// swept notes what a sweep found in a partition.
func (k *knownBackfills) swept(part int, found []ledger.Backfill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := make(map[string]ledger.Backfill, len(found))
	for _, b := range found {
		now[b.Job] = b
	}
	if k.all == nil {
		k.all = make(map[int]map[string]ledger.Backfill)
	}
	k.all[part] = now
}

// fed notes how far this node has taken a backfill.
func (k *knownBackfills) fed(part int, b ledger.Backfill, ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ended:
		delete(k.all[part], b.Job)
	case k.all[part] != nil:
		k.all[part][b.Job] = b
	}
}

// of are the backfills of a partition.
func (k *knownBackfills) of(part int) (list []ledger.Backfill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.all[part] {
		list = append(list, b)
	}
	slices.SortFunc(list, ledger.ByJob)
	return list
}

// refeed stores backfills again in partitions in which this node has reported nothing yet.
func (f *epochs) refeed(ctx context.Context) error {
	f.mu.Lock()
	ids := make(map[int]string)
	for part, e := range f.epochs {
		if e.State() == failover.Asserting {
			ids[part] = e.ID()
		}
	}
	f.mu.Unlock()
	for _, part := range f.parts() {
		known := f.l.lanes.backfills.of(part)
		if ids[part] == "" || len(known) == 0 {
			continue
		}
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		stored, err := f.l.Ledger.At(ids[part]).Refeed(call, part, known)
		cancel()
		if err != nil {
			return err
		}
		if stored > 0 {
			f.l.Log.Warn("Redis had lost backfills, or how far they were; they go on from where this node saw them last", "backfills", stored)
		}
	}
	return nil
}
