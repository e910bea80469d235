package failover

import (
	"context"
	"slices"
	"sync"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
)

// Backfills are the backfills that are under way, as this node saw them last: a Redis that has lost them gets them back.
type Backfills struct {
	mu  sync.Mutex
	all map[int]map[string]ledger.Backfill // by partition and job
}

// Missing are the backfills of a partition that were under way, and that a sweep has not found.
func (k *Backfills) Missing(part int, found []ledger.Backfill) (list []ledger.Backfill) {
	return slices.DeleteFunc(k.of(part), func(b ledger.Backfill) bool {
		return slices.ContainsFunc(found, func(other ledger.Backfill) bool { return other.Job == b.Job })
	})
}

// Swept notes what a sweep found in a partition.
func (k *Backfills) Swept(part int, found []ledger.Backfill) {
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

// Fed notes how far this node has taken a backfill.
func (k *Backfills) Fed(part int, b ledger.Backfill, ended bool) {
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
func (k *Backfills) of(part int) (list []ledger.Backfill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.all[part] {
		list = append(list, b)
	}
	slices.SortFunc(list, ledger.ByJob)
	return list
}

// refeed stores backfills again in partitions in which this node has reported nothing yet.
func (es *Epochs) refeed(ctx context.Context) error {
	es.mu.Lock()
	ids := make(map[int]string)
	for part, e := range es.epochs {
		if e.State() == Asserting {
			ids[part] = e.ID()
		}
	}
	es.mu.Unlock()
	for _, part := range es.Parts() {
		known := es.Reporter.Backfills.of(part)
		if ids[part] == "" || len(known) == 0 {
			continue
		}
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		stored, err := backfill.Refeed(call, es.Ledger.At(ids[part]), part, known)
		cancel()
		if err != nil {
			return err
		}
		if stored > 0 {
			es.Log.Warn("Redis had lost backfills, or how far they were; they go on from where this node saw them last", "backfills", stored)
		}
	}
	return nil
}
