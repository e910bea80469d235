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
	"github.com/escapement/escapement/scheduler/internal/work"
)

// fact is what registering one job brought to light: its cursor, or why it stays outside.
type result struct {
	job     *work.Job
	cursor  int64
	outside string
	detail  string
	rival   string // digest of the stored definition that supersedes the job's
}

// begun is told that the first registration was answered, or that there is nothing to register.
func (r *registrar) begun() {
	if !r.fresh {
		return
	}
	r.fresh = false
	r.n.Standing.Registered.Store(true)
	r.n.Log.Info("node started", "id", r.n.ID, "namespace", r.n.Namespace, "jobs", r.n.Jobs.Len(), "revision", r.n.Revision, "generation", r.n.Generation)
	if r.n.Revision == "" {
		r.n.Log.Warn("without a revision, the definition registered last wins; a deploy that is half done may not be ordered right. " +
			"Set node.revision (Config.Revision), for instance to the build time")
	}
}

// register stores the definitions of jobs, in batches by partition and there by index, however they
// are listed. Their texts are sent when the ledger lacks one of them. A partition whose master is unreachable keeps its own jobs outside: beside lane.ErrBreaker stand the facts of all others. A new job starts from now. Where another definition is stored, the newer revision
// decides, and between equal ones the one that registers later; an older one counts again when no
// other living node holds the stored one. What is wrong with one job keeps no other outside.
func (r *registrar) register(ctx context.Context, list []*work.Job) ([]result, error) {
	wishes := make([]*Registration, len(list))
	for i, j := range list {
		wishes[i] = &Registration{Job: j, Def: ledger.Definition{Job: j.Name, Digest: j.Digest, Revision: r.n.Revision, Generation: r.n.Generation}}
	}
	r.whole = false
	var facts []result
	var some error // of partitions whose masters are unreachable
	for range Rounds {
		slices.SortFunc(wishes, func(a, b *Registration) int { return cmp.Or(a.Job.Part-b.Job.Part, a.Job.Index-b.Job.Index) })
		var again []*Registration
		for batch := range work.Batches(wishes, func(w *Registration) int { return w.Job.Part }) {
			known, more, err := r.partition(ctx, batch)
			facts, again = append(facts, known...), append(again, more...)
			if err != nil && !errors.Is(err, lane.ErrBreaker) {
				return facts, err
			}
			some = cmp.Or(some, err)
		}
		if wishes = again; len(wishes) == 0 {
			return facts, some
		}
	}
	for _, w := range wishes {
		facts = append(facts, result{job: w.Job, outside: work.Moving})
	}
	return facts, some
}

// partition makes wishes of one partition, and returns what is known of them, and those that are to be made again. lane.ErrBreaker is of this
// one, or of one whose job is followed.
func (r *registrar) partition(ctx context.Context, wishes []*Registration) (facts []result, again []*Registration, err error) {
	part := wishes[0].Job.Part
	var answers []ledger.Defined
	err = r.n.Lanes.At("register", part, func() (err error) {
		answers, err = r.define(ctx, wishes)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	r.around = nil
	for i, w := range wishes {
		f, done := r.judge(ctx, w, answers[i])
		if !done {
			w.Last = answers[i].Last
			again = append(again, w)
			continue
		}
		f, failed := r.follow(ctx, w, f)
		switch {
		case failed == nil:
			facts = append(facts, f)
		case errors.Is(failed, lane.ErrBreaker):
			err = failed
		default:
			return facts, again, failed
		}
	}
	return facts, again, err
}

// follow asks to be told of the job that a registered one follows, and no more of the one that it followed
// before. Its definition is stored by then: an event for a job that nobody knows is dropped.
func (r *registrar) follow(ctx context.Context, w *Registration, f result) (result, error) {
	if f.outside != "" || f.job.After == "" && w.after == "" {
		return f, nil
	}
	if w.after != "" && w.after != f.job.After {
		if err := r.tell(ctx, w.after, f.job.Name, r.n.Ledger.Unfollow); err != nil {
			return f, err
		}
	}
	if f.job.After == "" {
		return f, nil
	}
	err := r.tell(ctx, f.job.After, f.job.Name, r.n.Ledger.Follow)
	if errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed) {
		f.outside, f.detail, err = work.Crowded, err.Error(), nil
	}
	return f, err
}

// tell tells a job's partition who follows it, or does not any more; lane.ErrBreaker when its master is unreachable.
func (r *registrar) tell(ctx context.Context, upstream, job string, what func(ctx context.Context, upstream, job string) error) error {
	part := r.n.Ledger.Partition(upstream)
	call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
	defer cancel()
	return r.n.Lanes.At("register", part, func() error { return what(call, upstream, job) })
}

// define asks once, and again after a look at the clock when Redis' clock is not what we believe.
func (r *registrar) define(ctx context.Context, wishes []*Registration) ([]ledger.Defined, error) {
	for try := 0; ; try++ {
		now := r.n.Clock.Now().Truncate(time.Millisecond)
		defs := make([]ledger.Definition, len(wishes))
		for i, w := range wishes {
			defs[i] = w.At(now)
			if r.whole || w.whole {
				raw, err := textOf(w.Job)
				if err != nil {
					return nil, err
				}
				defs[i].Text = raw
			}
		}
		call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
		answers, err := r.n.Ledger.Define(call, now.UnixMilli(), defs)
		cancel()
		if !errors.Is(err, ledger.ErrClock) || try == Rounds {
			return answers, err
		}
		r.n.Lanes.Resample(ctx)
	}
}

// judge acts on one answer: a fact, or a wish that is to be made again as a replacement.
func (r *registrar) judge(ctx context.Context, w *Registration, got ledger.Defined) (result, bool) {
	j := w.Job
	switch got.Word {
	case "created", "same", "replaced":
		if got.Word == "replaced" {
			r.n.Log.Info("definition replaced", "job", j.Name, "schedule", j.Schedule, "next", instant(got.Cursor))
		}
		return result{job: j, cursor: got.Cursor}, true
	case "differs":
	case "missing":
		w.whole, r.whole = true, true // then the others are missing as well, most likely
		return result{}, false
	case "standby":
		return result{job: j, outside: work.Standby}, true
	default:
		return result{job: j, outside: work.Foreign}, true
	}
	old, err := jobs.ParseDefinition(got.Text)
	if err == nil && old.Generation != r.n.Generation {
		return result{job: j, outside: work.Standby, detail: fmt.Sprintf("generation %q runs it, own %q", old.Generation, r.n.Generation)}, true
	}
	if err == nil && !r.decides(ctx, j, r.fresh || r.outside[j] == work.Unregistered, got) {
		return result{job: j, outside: work.Superseded, rival: got.Digest, detail: fmt.Sprintf("stored revision %q, own %q", got.Revision, r.n.Revision)}, true
	}
	w.whole = !got.Stored
	if err == nil {
		err = w.Replaces(old, got.Digest, got.Cursor)
	}
	if err != nil {
		return result{job: j, outside: work.Foreign, detail: fmt.Sprintf("the stored definition: %v", err)}, true
	}
	return result{}, false
}

// decides says whether this node's definition takes the place of a stored one of its own generation: the newer revision
// does; of equal ones that which is registered later, but not one that was stored before; and any if nobody who lives
// and claims holds the stored one, older builds apart: the build that stored it may be gone. Never over another generation's:
// that is for a promotion.
func (r *registrar) decides(ctx context.Context, j *work.Job, fresh bool, stored ledger.Defined) bool {
	if r.n.Standing.Drain.Load() == nil { // else it would stop those who claim, and claims nothing itself
		if own := r.n.Revision; own > stored.Revision || fresh && own == stored.Revision && !stored.Stored {
			return true
		}
	}
	//guard:older-yields P7 an older build changes nothing while somebody holds what is stored
	if r.held(ctx, j.Name, stored.Digest) {
		return false
	}
	return true
}

// held says whether another living node holds a definition that was just found stored. The last beat may be older than
// that: before it is believed that nobody does, the roster is read again, once for each answer of the ledger.
func (r *registrar) held(ctx context.Context, name, digest string) bool {
	if r.n.View.Load().Announced(name, digest, r.n.ID, r.rank()) {
		return true
	}
	if r.around == nil {
		call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
		defer cancel()
		c, _, _, err := ReadRoster(call, r.n.Ledger, r.n.Roster, r.n.View.Load(), r.n.Ledger.Partition(name))
		if err != nil {
			return true // as far as this node knows; it asks again
		}
		r.around = c
	}
	return r.around.Announced(name, digest, r.n.ID, r.rank())
}

// rank is the revision that decides over those before it: none, while an operator has drained this node.
func (r *registrar) rank() string {
	if r.n.Standing.Drain.Load() != nil {
		return ""
	}
	return r.n.Revision
}

// freed says whether a job is superseded by a definition that no living node holds any more.
func (r *registrar) freed() bool {
	c := r.n.View.Load()
	for j, digest := range r.rivals {
		if r.outside[j] == work.Superseded && !c.Announced(j.Name, digest, r.n.ID, r.rank()) {
			return true
		}
	}
	return false
}
