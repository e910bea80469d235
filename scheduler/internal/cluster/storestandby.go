package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// storeStandby stores the definitions of jobs on standby, once each. No entry names them, but a
// promotion may.
func (r *registrar) storeStandby(ctx context.Context) error {
	maps.DeleteFunc(r.stored, func(j *work.Job, _ bool) bool { return r.unclaimable[j] != work.Standby })
	var list []*work.Job
	for j, why := range r.unclaimable {
		if why == work.Standby && !r.stored[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	for batch := range work.Batches(list, ledger.BatchMax, func(j *work.Job) int { return j.Part }) {
		byDigest, digests := make(map[string]*work.Job, len(batch)), make([]string, len(batch))
		for i, j := range batch {
			byDigest[j.Digest], digests[i] = j, j.Digest
		}
		err := r.lanes.At("register", batch[0].Part, func() error {
			call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
			defer cancel()
			return define.Store(call, r.ledger, batch[0].Part, digests, func(digest string) ([]byte, error) { return definitionText(byDigest[digest]) })
		})
		if errors.Is(err, lane.ErrBreaker) {
			continue
		}
		if err != nil {
			return err
		}
		for _, j := range batch {
			r.stored[j] = true
		}
	}
	return nil
}

// definitionText is a job's definition as it is stored.
func definitionText(j *work.Job) ([]byte, error) {
	raw, err := json.Marshal(j.Def)
	if err != nil {
		return nil, fmt.Errorf("definition of job %s: %w", j.Name, err)
	}
	return raw, nil
}
