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
		was, now := s.lacking[part], lacking{incarnation, found.Lacking[part]}
		if was.incarnation != incarnation {
			was = lacking{incarnation, ledger.LackedBefore(incarnation)}
		}
		//guard:backfill-missed P2 a backfill whose record was deleted is stored again
		if s.lacksBackfills(ctx, part, found.Backfills, was) {
			now.keys = append(now.keys, backfillsKey)
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

// backfillsKey is the name of the key of backfills that are under way. Only nodes know which it lacks.
const backfillsKey = "backfills"

// lacksBackfills notes the backfills that a sweep found, and reports whether a partition has lost others that this node knows. Those stay known
// until the next sweep after they were stored again.
func (s *sweep) lacksBackfills(ctx context.Context, part int, found []ledger.Backfill, was lacking) bool {
	here := slices.DeleteFunc(slices.Clone(found), func(b ledger.Backfill) bool { return s.l.Ledger.Partition(b.Job) != part })
	lost := s.l.lanes.backfills.missing(part, here)
	if slices.Contains(was.keys, backfillsKey) {
		lost = nil
	}
	some, err := s.l.Ledger.LostBackfills(ctx, part, lost)
	if err == nil {
		lost = some
	} else if ctx.Err() == nil {
		s.l.fail(roleSweep, err)
	}
	s.l.lanes.backfills.swept(part, append(here, lost...))
	return err == nil && len(lost) > 0
}
