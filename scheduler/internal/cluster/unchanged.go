package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// unchanged registers the jobs whose stored definitions are this node's, by the chunks that the
// node has announced. It returns their results, and the other jobs. So a node that restarts sends
// one line for each thousand jobs. A chunk counts when all of its jobs are to be registered. Jobs
// of unreachable masters are among the other jobs.
func (r *registrar) unchanged(ctx context.Context, regs []*Registration) (results []result, others []*Registration, err error) {
	of := r.announcer.now.Load()
	if of == nil {
		return nil, regs, nil
	}
	byName := make(map[string]*Registration, len(regs))
	for _, w := range regs {
		byName[w.Job.Name] = w
	}
	for _, chunks := range of.chunks {
		for _, c := range chunks {
			if !covers(byName, c) {
				continue
			}
			some, err := r.current(ctx, c, byName)
			if err != nil && !errors.Is(err, lane.ErrBreaker) {
				return results, nil, err
			}
			results = append(results, some...)
		}
	}
	done := make(map[*work.Job]bool, len(results))
	for _, f := range results {
		done[f.job] = true
	}
	return results, slices.DeleteFunc(regs, func(w *Registration) bool { return done[w.Job] }), nil
}

// covers reports whether all jobs of a chunk are to be registered in the chunk's definitions.
func covers(regs map[string]*Registration, c define.Chunk) bool {
	for job, digest := range c.Jobs {
		if w := regs[job]; w == nil || w.Def.Digest != digest {
			return false
		}
	}
	return len(c.Jobs) > 0
}

// current registers the jobs of a chunk whose stored definitions are the chunk's. It leaves out a
// job with an upstream whose master is unreachable.
func (r *registrar) current(ctx context.Context, c define.Chunk, regs map[string]*Registration) (results []result, err error) {
	var cursors map[string]int64
	err = r.lanes.At("register", c.Part, func() (err error) {
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		defer cancel()
		cursors, err = define.Current(call, r.ledger, c, r.jobs.Revision())
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cursors)) {
		w := regs[name]
		f, err := r.follow(ctx, w, result{job: w.Job, cursor: cursors[name]})
		if errors.Is(err, lane.ErrBreaker) {
			continue
		}
		if err != nil {
			return nil, err
		}
		results = append(results, f)
	}
	return results, nil
}
