package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// result is the result of one registration: the job's cursor, or why the job is not claimed.
type result struct {
	job    *work.Job
	cursor int64
	reason string
	detail string
	rival  string // digest of the stored definition that supersedes the job's
}

// firstDone notes that the first registration was answered, or that there is nothing to register.
func (r *registrar) firstDone() {
	if !r.firstPending {
		return
	}
	r.firstPending = false
	r.state.Registered.Store(true)
	r.log.Info("node started", "id", r.id, "namespace", r.namespace, "jobs", r.jobs.Len(), "revision", r.jobs.Revision(), "generation", r.generation)
	if r.jobs.Revision() == "" {
		r.log.Warn("without a revision, the definition registered last wins; a deploy that is half done may not be ordered right. " +
			"Build in a git checkout, whose commit time is taken, or set node.revision (Config.Revision), for instance to the build time")
	}
}

// register stores the definitions of jobs, except for the ones stored already, in batches by
// partition. It sends their texts when the ledger lacks one of them. A new job starts from now.
// Where another definition is stored, the newer revision decides, and of equal revisions the later
// registration. An older revision counts again when no other living node holds the stored one. A
// problem with one job does not affect other jobs. With lane.ErrBreaker, for partitions whose
// masters are unreachable, the results of all other jobs are returned.
func (r *registrar) register(ctx context.Context, list []*work.Job) ([]result, error) {
	regs := make([]*Registration, len(list))
	for i, j := range list {
		regs[i] = &Registration{Job: j, Def: define.Definition{Job: j.Name, Digest: j.Digest, Revision: r.jobs.Revision(), Generation: r.generation}}
	}
	r.sendTexts = false
	results, regs, err := r.unchanged(ctx, regs)
	if err != nil || len(regs) == 0 {
		return results, err
	}
	var some error // for partitions whose masters are unreachable
	for range Rounds {
		slices.SortFunc(regs, func(a, b *Registration) int { return cmp.Or(a.Job.Part-b.Job.Part, a.Job.Index-b.Job.Index) })
		var again []*Registration
		for batch := range work.Batches(regs, ledger.BatchMax, func(w *Registration) int { return w.Job.Part }) {
			known, more, err := r.partition(ctx, batch)
			results, again = append(results, known...), append(again, more...)
			if err != nil && !errors.Is(err, lane.ErrBreaker) {
				return results, err
			}
			some = cmp.Or(some, err)
		}
		if regs = again; len(regs) == 0 {
			return results, some
		}
	}
	for _, w := range regs {
		results = append(results, result{job: w.Job, reason: work.KeptChanging})
	}
	return results, some
}

// partition registers jobs of one partition. It returns the results, and the jobs that must be
// tried again. lane.ErrBreaker concerns this partition, or an upstream's.
func (r *registrar) partition(ctx context.Context, regs []*Registration) (results []result, again []*Registration, err error) {
	part := regs[0].Job.Part
	var answers []define.Defined
	err = r.lanes.At("register", part, func() (err error) {
		answers, err = r.define(ctx, regs)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	r.freshView = nil
	for i, w := range regs {
		f, done := r.judge(ctx, w, answers[i])
		if !done {
			w.Last = answers[i].Last
			again = append(again, w)
			continue
		}
		f, failed := r.follow(ctx, w, f)
		switch {
		case failed == nil:
			results = append(results, f)
		case errors.Is(failed, lane.ErrBreaker):
			err = failed
		default:
			return results, again, failed
		}
	}
	return results, again, err
}

// follow adds a registered job to the followers of its upstreams, and removes it from the followers
// of its former upstreams. Its definition is stored by then: events for an unknown job are dropped.
func (r *registrar) follow(ctx context.Context, w *Registration, f result) (result, error) {
	if f.reason != "" {
		return f, nil
	}
	for _, before := range w.after {
		if slices.Contains(f.job.After, before) {
			continue
		}
		unfollow := func(ctx context.Context) error { return follow.Unfollow(ctx, r.ledger, 0, before, f.job.Name) }
		if err := r.call(ctx, before, unfollow); err != nil {
			return f, err
		}
	}
	for _, upstream := range f.job.After {
		err := r.followOne(ctx, upstream, f.job.Name)
		if errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed) {
			f.reason, f.detail, err = work.TooManyFollowers, err.Error(), nil
		}
		if err != nil || f.reason != "" {
			return f, err
		}
	}
	return f, nil
}

// call calls the partition of a job that is followed; lane.ErrBreaker when its master is
// unreachable.
func (r *registrar) call(ctx context.Context, upstream string, what func(ctx context.Context) error) error {
	part := r.ledger.Partition(upstream)
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	return r.lanes.At("register", part, func() error { return what(call) })
}

// followOne adds a job to the followers of one upstream.
func (r *registrar) followOne(ctx context.Context, upstream, job string) error {
	return r.call(ctx, upstream, func(ctx context.Context) error { return follow.Follow(ctx, r.ledger, 0, upstream, job) })
}

// define sends the definitions, and again after a sample of the clock when the ledger refuses this
// node's time.
func (r *registrar) define(ctx context.Context, regs []*Registration) ([]define.Defined, error) {
	for try := 0; ; try++ {
		now := r.clock.Now().Truncate(time.Millisecond)
		defs := make([]define.Definition, len(regs))
		for i, w := range regs {
			defs[i] = w.At(now)
			if r.sendTexts || w.sendText {
				raw, err := definitionText(w.Job)
				if err != nil {
					return nil, err
				}
				defs[i].Text = raw
			}
		}
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		answers, err := define.Define(call, r.ledger, now.UnixMilli(), defs)
		cancel()
		if !errors.Is(err, ledger.ErrClock) || try == Rounds {
			return answers, err
		}
		r.lanes.Resample(ctx)
	}
}

// judge handles one answer. It returns the result, or false when the registration is to be tried
// again as a replacement.
func (r *registrar) judge(ctx context.Context, w *Registration, got define.Defined) (result, bool) {
	j := w.Job
	switch got.Status {
	case "created", "same", "replaced":
		if got.Status == "replaced" {
			r.log.Info("definition replaced", "job", j.Name, "schedule", j.Job.Schedule, "next", instant(got.Cursor))
		}
		return result{job: j, cursor: got.Cursor}, true
	case "differs":
	case "missing":
		w.sendText, r.sendTexts = true, true // most likely the other texts are missing too
		return result{}, false
	case "standby":
		return result{job: j, reason: work.Standby}, true
	default:
		return result{job: j, reason: work.UnknownFormat}, true
	}
	old, err := jobs.ParseDefinition(got.Text)
	if err == nil && old.Generation != r.generation {
		return result{job: j, reason: work.Standby, detail: fmt.Sprintf("generation %q runs it, own %q", old.Generation, r.generation)}, true
	}
	//guard:kinds-apart P7 no revision decides between a program's job and a stored one of its name
	if err == nil && (old.Stored > 0) != (j.Def.Stored > 0) {
		if detail := r.otherKind(ctx, j, got.Digest); detail != "" {
			return result{job: j, reason: work.Superseded, rival: got.Digest, detail: detail}, true
		}
	} else if err == nil && !r.decides(ctx, j, r.firstPending || r.unclaimable[j] == work.Unregistered, got) {
		return result{job: j, reason: work.Superseded, rival: got.Digest, detail: fmt.Sprintf("stored revision %q, own %q", got.Revision, r.jobs.Revision())}, true
	}
	w.sendText = !got.Stored
	if err == nil {
		err = w.Replaces(old, got.Digest, got.Cursor)
	}
	if err != nil {
		return result{job: j, reason: work.UnknownFormat, detail: fmt.Sprintf("the stored definition: %v", err)}, true
	}
	return result{}, false
}

// decides reports whether this node's definition replaces a stored one of its own generation. The
// newer revision does. Of equal revisions the later registration does, unless its definition was
// stored before. Any does if no living node that may claim holds the stored one; older builds do
// not count, because the build that stored it may be gone. A definition of another generation is
// only replaced by a promotion.
func (r *registrar) decides(ctx context.Context, j *work.Job, fresh bool, stored define.Defined) bool {
	if r.state.Drain.Load() == nil { // a drained node claims nothing, and must not stop others
		if own := r.jobs.Revision(); own > stored.Revision || fresh && own == stored.Revision && !stored.Stored {
			return true
		}
	}
	//guard:older-yields P7 an older build changes nothing while a living node holds the stored definition
	if r.held(ctx, j.Name, stored.Digest, r.rank()) {
		return false
	}
	return true
}

// held reports whether another living node holds a definition that was just found stored. The last
// heartbeat may be older than that definition, so the roster is read again before the answer no,
// once for each answer of the ledger. Nodes of an earlier revision do not count.
func (r *registrar) held(ctx context.Context, name, digest, revision string) bool {
	if r.view.Load().Announced(name, digest, r.id, revision) {
		return true
	}
	if r.freshView == nil {
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		defer cancel()
		c, _, _, err := ReadRoster(call, r.ledger, r.roster, r.view.Load(), PartsNeeded(r.ledger.Partition(name)))
		if err != nil {
			return true // on the last reading; the registration is repeated
		}
		r.freshView = c
	}
	return r.freshView.Announced(name, digest, r.id, revision)
}

// rank is the lowest revision whose nodes count as holders: this node's own; every revision while
// this node is drained.
func (r *registrar) rank() string {
	if r.state.Drain.Load() != nil {
		return ""
	}
	return r.jobs.Revision()
}

// rivalGone reports whether a job is superseded by a definition that no living node holds any more.
func (r *registrar) rivalGone() bool {
	c := r.view.Load()
	for j, digest := range r.rivals {
		if r.unclaimable[j] == work.Superseded && !c.Announced(j.Name, digest, r.id, r.rank()) {
			return true
		}
	}
	return false
}
