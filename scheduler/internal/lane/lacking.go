package lane

import (
	"context"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// checkRecords begins another epoch in partitions that have lost records since the last sweep, in which nodes store again what they know.
// Records that nobody knows are lacking afterwards too, and begin none.
func (s *sweep) checkRecords(ctx context.Context, found ledger.ScanResult) {
	for part, incarnation := range found.Incarnations {
		if incarnation != ledger.Incarnation(s.l.epochs.id(part)) {
			s.l.epochs.recheck()
			continue
		}
		s.l.lanes.backfills.swept(part, slices.DeleteFunc(slices.Clone(found.Backfills), func(b ledger.Backfill) bool { return s.l.Ledger.Partition(b.Job) != part }))
		was, swept := s.lacking[part]
		s.lacking[part] = found.Lacking[part]
		lost := strings.FieldsFunc(found.Lacking[part], func(r rune) bool { return r == ',' })
		lost = slices.DeleteFunc(lost, func(key string) bool { return slices.Contains(strings.Split(was, ","), key) })
		if !swept || len(lost) == 0 {
			continue
		}
		s.l.Log.Warn("Redis has lost records; nothing is claimed until every node has stored again what it knows", "partition", part, "of", strings.Join(lost, ","))
		if err := s.l.Ledger.Supersede(ctx, part, incarnation); err != nil && ctx.Err() == nil {
			s.lacking[part] = was // the next sweep tries again
			s.l.fail(roleSweep, err)
		}
		s.l.epochs.recheck()
	}
}
