package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// shelveEvery is how often a node on standby writes its definitions beside the active ones again: they are dropped when
// nobody did for 30 days.
const shelveEvery = time.Hour

// shelf is what a node has written beside the active definitions.
type shelf struct {
	fresh bool               // nothing was written since the node began
	has   map[*work.Job]bool // what is there, or gave way to another definition of the node's generation
	again time.Time          // when all are written again
	sets  map[string]map[string]string
}

// shelve writes the definitions of jobs on standby beside the active ones: once, every hour, and when the sets of
// definitions that live are other ones, for then another of the same generation may have to give way. A partition that has no
// room for this generation keeps its own jobs from being written, and is the error.
func (r *registrar) shelve(ctx context.Context) error {
	s, sets, now := &r.shelf, r.n.View.Crowd().Sets, time.Now()
	maps.DeleteFunc(s.has, func(j *work.Job, _ bool) bool { return r.outside[j] != work.Standby })
	same := maps.EqualFunc(s.sets, sets, func(_, _ map[string]string) bool { return true })
	if !same || !now.Before(s.again) {
		clear(s.has)
		s.again = now.Add(shelveEvery)
	}
	s.sets = sets
	var list []*work.Job
	for j, why := range r.outside {
		if why == work.Standby && !s.has[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	part, full := -1, error(nil)
	noRoom := -1 // the last partition that had none
	for batch := range work.Batches(list, func(j *work.Job) int { return j.Part }) {
		first := batch[0].Part != part
		if part = batch[0].Part; part == noRoom {
			continue
		}
		err := r.putAside(ctx, first, batch)
		switch {
		case errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed): // too many generations; others may have room
			full, noRoom = err, part
		case err != nil:
			return err
		}
	}
	s.fresh = s.fresh && full != nil
	return full
}

// putAside writes the definitions of jobs of one partition.
func (r *registrar) putAside(ctx context.Context, first bool, list []*work.Job) error {
	batch := make([]ledger.Aside, len(list))
	for i, j := range list {
		raw, err := json.Marshal(j.Def)
		if err != nil {
			return fmt.Errorf("definition of job %s: %w", j.Name, err)
		}
		batch[i] = ledger.Aside{Job: j.Name, Digest: j.Digest, Revision: r.n.Revision, Text: raw}
	}
	for range Rounds {
		call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
		answers, err := r.n.Ledger.Shelve(call, r.n.Generation, first, batch)
		cancel()
		if err != nil {
			return err
		}
		r.around = nil
		var again []ledger.Aside
		var waits []*work.Job
		for i, a := range answers {
			stored := ledger.Defined{Digest: a.Digest, Revision: a.Revision, Former: a.Former}
			if a.Word == "differs" && r.decides(ctx, list[i], r.shelf.fresh, stored) {
				batch[i].Was = a.Digest
				again, waits = append(again, batch[i]), append(waits, list[i])
				continue
			}
			r.shelf.has[list[i]] = true
		}
		if batch, list = again, waits; len(batch) == 0 {
			return nil
		}
	}
	return nil // somebody else writes them as often; the next turn goes on
}
