package cluster

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// recheck reads from the catalog which of the newly registered stored jobs have been deleted
// meanwhile: the deletion may have found no entry to remove, or have removed it just before.
// recheck removes their entries, and changes the results. A node claims a stored job only after
// this, so a later deletion finds the entry. Without an answer the results of stored jobs are left
// out: these jobs are registered again, and all other jobs go on.
func (r *registrar) recheck(ctx context.Context, results []result) ([]result, error) {
	var list []*work.Job
	for _, f := range results {
		if f.reason == "" {
			list = append(list, f.job)
		}
	}
	gone, err := r.deleted(ctx, list)
	switch {
	case errors.Is(err, locking.ErrUnreachable):
		return slices.DeleteFunc(results, func(f result) bool { return f.reason == "" && f.job.Def.Stored > 0 }), nil
	case errors.Is(err, lane.ErrBreaker):
		err = nil // removal is tried again, and the job is not claimed
	}
	for i, f := range results {
		if f.reason == "" && gone[f.job] {
			results[i] = result{job: f.job, reason: work.Deleted}
		}
	}
	return results, err
}

// recheckLost does this for the jobs that the node lost before their registration was answered.
func (r *registrar) recheckLost(ctx context.Context) error {
	_, err := r.deleted(ctx, r.lostBeforeRegistered)
	switch {
	case errors.Is(err, lane.ErrBreaker), errors.Is(err, locking.ErrUnreachable):
		return nil // tried again
	case err == nil:
		r.lostBeforeRegistered = nil
	}
	return err
}

// deleted finds the jobs whose deletion from the catalog is later than their definition, and
// removes their entries if they were never used. A job with a history stays, as it does after a
// deletion during a run. lane.ErrBreaker is about some entries.
func (r *registrar) deleted(ctx context.Context, list []*work.Job) (map[*work.Job]bool, error) {
	var names []string
	for _, j := range list {
		if j.Def.Stored > 0 {
			names = append(names, j.Name)
		}
	}
	versions := make(map[string]int64)
	for some := range slices.Chunk(names, catalog.Page) {
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		found, err := catalog.Deleted(call, r.ledger, some)
		cancel()
		if err != nil {
			return nil, err
		}
		maps.Copy(versions, found)
	}
	gone := make(map[*work.Job]bool)
	var left error
	for _, j := range list {
		if j.Def.Stored == 0 || versions[j.Name] <= j.Def.Stored {
			continue
		}
		gone[j] = true
		err := r.lanes.At("register", j.Part, func() error {
			call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
			defer cancel()
			return operate.RemoveUnused(call, r.ledger, j.Name, j.Digest)
		})
		if err != nil && !errors.Is(err, lane.ErrBreaker) {
			return nil, err
		}
		left = cmp.Or(left, err)
	}
	return gone, left
}

// otherKind returns why a program's job does not replace a stored job of its name, or the other way
// round; "" when it does, whatever their revisions are. A stored job stays while it is in the
// catalog, a program's job while a living node has it.
func (r *registrar) otherKind(ctx context.Context, j *work.Job, digest string) string {
	if j.Def.Stored > 0 {
		if r.held(ctx, j.Name, digest, "") {
			return "a job of a program has this name and was there first: it runs; rename one of them, or delete the stored one (`jobs delete " + j.Name + "`)"
		}
		return ""
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	found, err := catalog.Jobs(call, r.ledger, j.Name)
	if err == nil && found[0].Version == 0 {
		return ""
	}
	return "a stored job has this name and was there first: it runs; delete the stored one (`jobs delete " + j.Name + "`), or rename this one"
}
