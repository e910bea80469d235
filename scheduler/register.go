package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// registerRounds is how often a registration is tried against a ledger that keeps moving, before
// it waits for the next turn.
const registerRounds = 5

// fact is what registering one job brought to light: its cursor, or why it stays outside.
type fact struct {
	job     *job
	cursor  int64
	outside string
	detail  string
	rival   string // digest of the stored definition that supersedes the job's
}

// wish is one job on its way into the ledger.
type wish struct {
	job *job
	def ledger.Definition
	old *jobs.Schedule // of the definition to be replaced; nil to create, or when it had no more ticks
	// after is the job that the definition to be replaced follows.
	after string
}

// at is the definition as of one instant: the new schedule's first tick after it, and the old
// schedule's ticks up to it, which nobody will run any more.
func (w *wish) at(now time.Time, last int64) ledger.Definition {
	def, after := w.def, now
	if w.old != nil {
		count, until := w.old.Count(time.UnixMilli(def.WasCursor), now.Add(time.Millisecond))
		//guard:old-ticks-counted P2 ticks of the old schedule that nobody will run are accounted for
		def.Until, def.Count = millis(until), int64(count)
		if def.Upcoming = def.WasCursor; def.WasCursor <= now.UnixMilli() {
			def.Upcoming = millis(w.old.Next(now))
		}
	}
	if w.job.schedule == nil {
		return def // it follows another job, and has no ticks of its own
	}
	if l := time.UnixMilli(last); last != 0 && l.After(after) {
		after = l
	}
	def.Cursor = millis(w.job.schedule.Next(after))
	return def
}

// begun is told that the first registration was answered, or that there is nothing to register.
func (r *registrar) begun() {
	if !r.fresh {
		return
	}
	r.fresh = false
	r.n.registered.Store(true)
	r.n.log.Info("node started", "id", r.n.id, "namespace", r.n.cfg.Namespace, "jobs", len(r.n.jobs), "revision", r.n.cfg.Revision, "generation", r.n.cfg.Generation)
}

// register stores the definitions of jobs, in batches by partition and there by index, however they
// are listed. A quiet partition keeps its own jobs outside: beside errQuiet stand the facts of all others. A new job starts from now. Where another definition is stored, the newer revision
// decides, and between equal ones the one that registers later; an older one counts again when no
// other living node holds the stored one. What is wrong with one job keeps no other outside.
func (r *registrar) register(ctx context.Context, list []*job) ([]fact, error) {
	wishes := make([]*wish, len(list))
	for i, j := range list {
		raw, err := json.Marshal(j.def)
		if err != nil {
			return nil, fmt.Errorf("definition of job %s: %w", j.Name, err)
		}
		wishes[i] = &wish{job: j, def: ledger.Definition{Job: j.Name, Digest: j.digest, Revision: r.n.cfg.Revision, Generation: r.n.cfg.Generation, Text: raw}}
	}
	lasts := make(map[*wish]int64)
	var facts []fact
	var some error // of partitions that are quiet
	for range registerRounds {
		slices.SortFunc(wishes, func(a, b *wish) int { return cmp.Or(a.job.part-b.job.part, a.job.index-b.job.index) })
		var again []*wish
		for len(wishes) > 0 {
			n := 1
			for n < len(wishes) && n < ledger.BatchMax && wishes[n].job.part == wishes[0].job.part {
				n++
			}
			known, more, err := r.partition(ctx, wishes[:n], lasts)
			facts, again = append(facts, known...), append(again, more...)
			if err != nil && !errors.Is(err, errQuiet) {
				return facts, err
			}
			some = cmp.Or(some, err)
			wishes = wishes[n:]
		}
		if wishes = again; len(wishes) == 0 {
			return facts, some
		}
	}
	for _, w := range wishes {
		facts = append(facts, fact{job: w.job, outside: moving})
	}
	return facts, some
}

// partition makes wishes of one partition, and returns what is known of them, and those that are to be made again. errQuiet is of this
// one, or of one whose job is followed.
func (r *registrar) partition(ctx context.Context, wishes []*wish, lasts map[*wish]int64) (facts []fact, again []*wish, err error) {
	part := wishes[0].job.part
	if r.n.quiet.of(part) {
		return nil, nil, errQuiet
	}
	answers, err := r.define(ctx, wishes, lasts)
	if err != nil {
		return nil, nil, r.n.quiet.spare("register", err, part)
	}
	r.around = nil
	for i, w := range wishes {
		f, done := r.judge(ctx, w, answers[i])
		if !done {
			lasts[w] = answers[i].Last
			again = append(again, w)
			continue
		}
		f, failed := r.follow(ctx, w, f)
		switch {
		case failed == nil:
			facts = append(facts, f)
		case errors.Is(failed, errQuiet):
			err = failed
		default:
			return facts, again, failed
		}
	}
	return facts, again, err
}

// follow asks to be told of the job that a registered one follows, and no more of the one that it followed
// before. Its definition is stored by then: an event for a job that nobody knows is dropped.
func (r *registrar) follow(ctx context.Context, w *wish, f fact) (fact, error) {
	if f.outside != "" || f.job.After == "" && w.after == "" {
		return f, nil
	}
	if w.after != "" && w.after != f.job.After {
		if err := r.tell(ctx, w.after, f.job.Name, r.n.ledger.Unfollow); err != nil {
			return f, err
		}
	}
	if f.job.After == "" {
		return f, nil
	}
	err := r.tell(ctx, f.job.After, f.job.Name, r.n.ledger.Follow)
	if errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrClosed) {
		f.outside, f.detail, err = crowded, err.Error(), nil
	}
	return f, err
}

// tell tells a job's partition who follows it, or does not any more; errQuiet when that is quiet.
func (r *registrar) tell(ctx context.Context, upstream, job string, what func(ctx context.Context, upstream, job string) error) error {
	part := r.n.ledger.Partition(upstream)
	if r.n.quiet.of(part) {
		return errQuiet
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.n.quiet.spare("register", what(call, upstream, job), part)
}

// define asks once, and again after a look at the clock when Redis' clock is not what we believe.
func (r *registrar) define(ctx context.Context, wishes []*wish, lasts map[*wish]int64) ([]ledger.Defined, error) {
	for try := 0; ; try++ {
		now := r.n.clock.now().Truncate(time.Millisecond)
		defs := make([]ledger.Definition, len(wishes))
		for i, w := range wishes {
			defs[i] = w.at(now, lasts[w])
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		answers, err := r.n.ledger.Define(call, now.UnixMilli(), defs)
		cancel()
		if !errors.Is(err, ledger.ErrClock) || try == registerRounds {
			return answers, err
		}
		r.n.resample(ctx)
	}
}

// judge acts on one answer: a fact, or a wish that is to be made again as a replacement.
func (r *registrar) judge(ctx context.Context, w *wish, got ledger.Defined) (fact, bool) {
	j := w.job
	switch got.Word {
	case "created", "same", "replaced":
		if got.Word == "replaced" {
			r.n.log.Info("definition replaced", "job", j.Name, "schedule", j.Schedule, "next", stampOf(got.Cursor))
		}
		return fact{job: j, cursor: got.Cursor}, true
	case "differs":
	case "standby":
		return fact{job: j, outside: standby}, true
	default:
		return fact{job: j, outside: foreign}, true
	}
	old, err := jobs.ParseDefinition(got.Text)
	if err == nil && old.Generation != r.n.cfg.Generation {
		return fact{job: j, outside: standby, detail: fmt.Sprintf("generation %q runs it, own %q", old.Generation, r.n.cfg.Generation)}, true
	}
	if err == nil && !r.decides(ctx, j, r.fresh || r.outside[j] == unregistered, got) {
		return fact{job: j, outside: superseded, rival: got.Digest, detail: fmt.Sprintf("stored revision %q, own %q", got.Revision, r.n.cfg.Revision)}, true
	}
	if err == nil {
		err = w.replaces(old, got.Digest, got.Cursor)
	}
	if err != nil {
		return fact{job: j, outside: foreign, detail: fmt.Sprintf("the stored definition: %v", err)}, true
	}
	return fact{}, false
}

// replaces makes the wish one to replace a stored definition, as it was seen at this cursor (ms).
func (w *wish) replaces(old jobs.Definition, digest string, cursor int64) error {
	w.def.WasDigest, w.def.WasCursor, w.old, w.after = digest, cursor, nil, old.After
	w.def.Same = old.Schedule == w.job.def.Schedule && old.TimeZone == w.job.def.TimeZone && old.After == w.job.def.After
	schedule, err := old.Job().ParsedSchedule()
	if schedule != nil {
		w.def.Old = schedule.String()
	}
	if cursor == 0 {
		return nil // it has no more ticks to count
	}
	w.old = schedule
	return err
}

// decides says whether this node's definition takes the place of a stored one of its own generation: the newer revision
// does; of equal ones that which is registered later, but not one that was replaced before; and any if nobody who lives
// and claims holds the stored one, older builds apart: the build that stored it may be gone. Never over another generation's:
// that is for a promotion.
func (r *registrar) decides(ctx context.Context, j *job, fresh bool, stored ledger.Defined) bool {
	if r.n.cordon.Load() == nil { // else it would stop those who claim, and claims nothing itself
		if own := r.n.cfg.Revision; own > stored.Revision || fresh && own == stored.Revision && !slices.Contains(stored.Former, j.digest) {
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
	if r.n.crowd.Load().announced(name, digest, r.n.id, r.rank()) {
		return true
	}
	if r.around == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		c, _, _, err := lookAround(call, r.n.roster)
		if err != nil {
			return true // as far as this node knows; it asks again
		}
		r.around = c
	}
	return r.around.announced(name, digest, r.n.id, r.rank())
}

// rank is the revision that decides over those before it: none, while an operator has drained this node.
func (r *registrar) rank() string {
	if r.n.cordon.Load() != nil {
		return ""
	}
	return r.n.cfg.Revision
}

// stir is told that the crowd is another one.
func (r *registrar) stir() { signal(r.stirred) }

// freed says whether a job is superseded by a definition that no living node holds any more.
func (r *registrar) freed() bool {
	c := r.n.crowd.Load()
	for j, digest := range r.rivals {
		if r.outside[j] == superseded && !c.announced(j.Name, digest, r.n.id, r.rank()) {
			return true
		}
	}
	return false
}
