package lane

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// lacking are the keys of a partition that lack records in an epoch.
type lacking struct {
	incarnation string
	keys        []string
}

// records finds partitions that have lost records.
type records struct {
	home  *link
	known *failover.Backfills
	log   *slog.Logger

	lacking map[int]lacking // by partition, as the last sweep found them
}

// check begins another epoch in partitions that have lost records since the last sweep; in it nodes
// store their own records again. Records that no node has are lacking afterwards too, and begin no
// epoch: an incarnation names the keys that lacked records before.
func (r *records) check(ctx context.Context, found query.ScanResult) {
	for part, incarnation := range found.Incarnations {
		if incarnation != ledger.Incarnation(r.home.epochs.EpochID(part)) {
			r.home.epochs.Recheck()
			continue
		}
		was, now := r.lacking[part], lacking{incarnation, found.Lacking[part]}
		if was.incarnation != incarnation {
			was = lacking{incarnation, ledger.LackedBefore(incarnation)}
		}
		//guard:backfill-missed P2 a backfill whose record was deleted is stored again
		if r.lacksBackfills(ctx, part, found.Backfills, was) {
			now.keys = append(now.keys, backfillsKey)
		}
		r.lacking[part] = now
		lost := slices.DeleteFunc(slices.Clone(now.keys), func(key string) bool { return slices.Contains(was.keys, key) })
		if len(lost) == 0 {
			continue
		}
		made, err := r.home.ledger.Supersede(ctx, part, incarnation, now.keys...)
		if made {
			r.log.Warn("Redis has lost records; nothing is claimed until every node has stored again what it knows", "partition", part, "of", strings.Join(lost, ","))
		}
		if err != nil && ctx.Err() == nil {
			r.lacking[part] = was // the next sweep tries again
			r.home.breaker.Fail(roleSweep, err)
		}
		r.home.epochs.Recheck()
	}
}

// backfillsKey is the name of the key of backfills that are under way. Only nodes know which it lacks.
const backfillsKey = "backfills"

// lacksBackfills notes a sweep's backfills, and reports whether a partition has lost any of the
// noted ones. The lost ones stay noted until the next sweep after they were stored again.
func (r *records) lacksBackfills(ctx context.Context, part int, found []ledger.Backfill, was lacking) bool {
	here := slices.DeleteFunc(slices.Clone(found), func(b ledger.Backfill) bool { return r.home.ledger.Partition(b.Job) != part })
	lost := r.known.Missing(part, here)
	if slices.Contains(was.keys, backfillsKey) {
		lost = nil
	}
	some, err := backfill.Lost(ctx, r.home.ledger, part, lost)
	if err == nil {
		lost = some
	} else if ctx.Err() == nil {
		r.home.breaker.Fail(roleSweep, err)
	}
	r.known.Swept(part, append(here, lost...))
	return err == nil && len(lost) > 0
}

// UnknownFormats logs how many records have a format that this version does not know: at a change,
// at most every logEvery. One role uses it.
type UnknownFormats struct {
	Log    *slog.Logger
	count  int
	logged time.Time
}

// Note notes that there are n such records.
func (s *UnknownFormats) Note(n int, what string) {
	if n == 0 || n == s.count || time.Since(s.logged) < logEvery {
		return
	}
	s.count, s.logged = n, time.Now()
	s.Log.Warn("records have a format that this version does not know; they are left alone; if no newer node wrote them, remove them by hand", "where", what, "records", n)
}
