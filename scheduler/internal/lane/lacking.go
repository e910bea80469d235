package lane

import (
	"context"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// lacking are the keys of a partition that lack records in an epoch.
type lacking struct {
	incarnation string
	keys        []string
}

// checkRecords begins another epoch in partitions that have lost records since the last sweep, in which nodes store again what they know.
// Records that nobody knows are lacking afterwards too, and begin none: an incarnation names the keys that lacked records before.
func (s *sweep) checkRecords(ctx context.Context, found ledger.ScanResult) {
	for part, incarnation := range found.Incarnations {
		if incarnation != ledger.Incarnation(s.l.epochs.id(part)) {
			s.l.epochs.recheck()
			continue
		}
		s.l.lanes.backfills.swept(part, slices.DeleteFunc(slices.Clone(found.Backfills), func(b ledger.Backfill) bool { return s.l.Ledger.Partition(b.Job) != part }))
		was, now := s.lacking[part], lacking{incarnation, found.Lacking[part]}
		if was.incarnation != incarnation {
			was = lacking{incarnation, ledger.LackedBefore(incarnation)}
		}
		s.lacking[part] = now
		lost := slices.DeleteFunc(slices.Clone(now.keys), func(key string) bool { return slices.Contains(was.keys, key) })
		if len(lost) == 0 {
			continue
		}
		made, err := s.l.Ledger.Supersede(ctx, part, incarnation, now.keys...)
		if made {
			s.l.Log.Warn("Redis has lost records; nothing is claimed until every node has stored again what it knows", "partition", part, "of", strings.Join(lost, ","))
		}
		if err != nil && ctx.Err() == nil {
			s.lacking[part] = was // the next sweep tries again
			s.l.fail(roleSweep, err)
		}
		s.l.epochs.recheck()
	}
}
