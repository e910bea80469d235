package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// registrar stores the node's definitions and gives jobs that are outside another try: at once
// when the ledger has lost them, else every RosterTTL; so after a rollback the older definition
// counts again as soon as no living node holds the newer one. Jobs that another generation runs are
// tried when a promotion begins, goes on or ends, see standby.go.
type registrar struct {
	n       *Cluster
	outside map[*work.Job]string // why; every job at first
	has     map[*work.Job]bool   // what the node has, as far as this role has heard
	changed chan struct{}        // holds one signal: the node has other jobs
	rivals  map[*work.Job]string // digests of what is stored of jobs that are superseded
	fresh   bool                 // the first registration is still to come
	lost    chan struct{}        // holds one signal: Redis may have lost what it knew, register everything
	told    chan struct{}        // holds one signal: rejected is not empty
	epoch   chan struct{}        // holds one signal: the epoch of promotions is another one
	stirred chan struct{}        // holds one signal: the crowd is another one
	whole   bool                 // of the registration that is made: texts are sent at once, the ledger lacks some
	around  *View                // the cluster as it was read after the answer that is being judged; nil: not yet
	idle    atomic.Bool          // all jobs are on standby
	waiting waiting
	kept    map[*work.Job]bool // on standby, and their definitions are stored

	refollowed time.Time

	mu       sync.Mutex
	rejected []rejection // from the agenda, at most one a job until it is registered again
}

func newRegistrar(n *Cluster) *registrar {
	r := &registrar{
		n: n, outside: make(map[*work.Job]string, n.Jobs.Len()), fresh: true, kept: make(map[*work.Job]bool),
		lost: n.Lost, told: make(chan struct{}, 1), epoch: make(chan struct{}, 1),
		stirred: make(chan struct{}, 1), rivals: make(map[*work.Job]string), changed: make(chan struct{}, 1),
	}
	r.changes()
	return r
}

// run registers until ctx ends.
func (r *registrar) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if r.n.Jobs.Len() == 0 {
		r.begun() // no answer will come
	}
	for try := 0; ; {
		var what scope
		select {
		case <-ctx.Done():
			return
		case <-r.told:
			if what = tryOutside; !r.take() {
				continue
			}
		case <-r.lost:
			what = tryAll
			r.n.announcer.repeat()
			clear(r.kept)
			r.n.Log.Info("every job is registered again, in case that Redis has lost it")
			for _, j := range r.n.Jobs.All() {
				r.outside[j] = work.Lost
			}
		case <-r.changed:
			r.changes()
			what = tryOutside
		case <-r.epoch:
			what, r.waiting.checks = tryAll, true
		case <-r.n.Moves.maybeOpen:
			what = r.retrySealed()
		case <-r.stirred:
			if !r.freed() {
				continue
			}
			if soon := r.waiting.soon(); soon > 0 {
				timer.Reset(min(soon, r.pace()))
				continue
			}
			what = tryOutside
		case <-timer.C:
			what = r.waiting.due()
		}
		err := r.once(ctx, what)
		next := r.pace()
		if err != nil && ctx.Err() == nil {
			if !errors.Is(err, lane.ErrBreaker) { // it is known
				r.n.Moves.refused(err)
				r.n.Health.Fail("register", err)
			}
			next, try = wait.Backoff(r.n.ID, try), try+1
		} else if err == nil {
			try = 0
		}
		timer.Reset(next)
	}
}

// once tries jobs that are outside and tells the agenda.
func (r *registrar) once(ctx context.Context, what scope) error {
	err := cmp.Or(r.n.announcer.announce(ctx), r.n.announcer.tidy(ctx))
	if err != nil {
		return err
	}
	if err := r.refollow(ctx); err != nil || len(r.outside) == 0 && !r.waiting.checks {
		return err
	}
	what, err = r.widen(ctx, what)
	if err != nil {
		return err
	}
	list := make([]*work.Job, 0, len(r.outside))
	for j, why := range r.outside { // in no order; register makes one
		if what == tryAll || what == tryOutside && why != work.Standby {
			list = append(list, j)
		}
	}
	began := time.Now()
	var left error // of partitions whose masters are unreachable
	if len(list) > 0 {
		control, err := r.restore(ctx)
		unheard := r.unheard(&err)
		if err != nil {
			return err
		}
		r.n.State.Control.Store(&control)
		list = slices.DeleteFunc(list, func(j *work.Job) bool { return slices.Contains(unheard, j.Part) })
		if left = r.try(ctx, list); left != nil && !errors.Is(left, lane.ErrBreaker) {
			return left
		}
		if len(unheard) > 0 {
			left = lane.ErrBreaker
		}
		r.n.Moves.accepted()
	}
	r.waiting.tried(what, time.Since(began))
	r.noteStandby()
	if err := r.storeStandby(ctx); err != nil {
		return err
	}
	r.n.Health.OK("register")
	return left
}

// unheard takes an UnreachableError out of err, tells of it, and returns its partitions.
func (r *registrar) unheard(err *error) []int {
	var e *ledger.UnreachableError
	if !errors.As(*err, &e) {
		return nil
	}
	r.n.Lanes.MarkUnreachable("register", e, e.Parts)
	*err = nil
	return e.Parts
}

// knock says what to try to see whether what a move has closed is open again: whatever was answered closed, and some job at
// least.
func (r *registrar) retrySealed() scope {
	for _, j := range r.n.Jobs.All() {
		if r.outside[j] != work.Standby {
			r.outside[j] = cmp.Or(r.outside[j], work.Sealed)
			return tryOutside
		}
	}
	return tryAll
}

// try registers jobs that are outside, but for those of partitions whose masters are unreachable.
func (r *registrar) try(ctx context.Context, list []*work.Job) error {
	facts, err := r.register(ctx, list)
	if err != nil && !errors.Is(err, lane.ErrBreaker) {
		return err
	}
	for _, f := range facts {
		was := r.outside[f.job]
		if delete(r.rivals, f.job); f.rival != "" {
			r.rivals[f.job] = f.rival
		}
		if f.outside == "" {
			delete(r.outside, f.job)
			r.n.Lanes.Registered(f.job, f.cursor)
			continue
		}
		if f.outside == work.Superseded || f.outside == work.Standby {
			r.n.Lanes.Displaced(f.job)
		}
		r.outside[f.job] = f.outside
		if was != f.outside && f.outside != work.Standby {
			r.n.Log.Warn("job is not claimed by this node", "job", f.job.Name, "why", f.outside, "detail", f.detail)
		}
	}
	var in agenda.Registered
	for _, f := range facts {
		if f.outside == "" {
			in.Jobs, in.Cursors = append(in.Jobs, f.job), append(in.Cursors, f.cursor)
		}
	}
	r.n.Inbox.Send(in)
	r.begun()
	return err
}

// active is the active generation as this node knows it: of the first node ever, if it knows nothing yet.
func (r *registrar) active() string {
	if c := r.n.State.Control.Load(); c != nil {
		return c.Generation
	}
	return r.n.Generation
}

// refollowEvery is how often a node says again whom its jobs follow.
const refollowEvery = time.Minute

// refollow says so in case that Redis has lost it, or that two versions of a job, taking turns in a deploy,
// have left the wrong word behind.
func (r *registrar) refollow(ctx context.Context) error {
	if time.Since(r.refollowed) < refollowEvery || r.n.Moves.isClosed() {
		return nil
	}
	for _, j := range r.n.Jobs.All() {
		if j.After == "" || r.outside[j] != "" {
			continue
		}
		err := r.tell(ctx, j.After, j.Name, r.n.Ledger.Follow)
		if err != nil && !errors.Is(err, lane.ErrBreaker) && (!errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrClosed)) { // else others have taken the places; its registration says so
			return err
		}
	}
	r.refollowed = time.Now()
	return nil
}

// restore reads the control record, and writes it again if Redis lost it, unless a move has closed the namespace: then
// its jobs are elsewhere.
func (r *registrar) restore(ctx context.Context) (ledger.Control, error) {
	if !r.n.Moves.isClosed() {
		return r.n.Ledger.Restore(ctx, r.active())
	}
	control, err := r.n.Ledger.Reread(ctx)
	return control, r.missing(err)
}

// missing makes the loss of a namespace that a move has closed a part of that.
func (r *registrar) missing(err error) error {
	if !errors.Is(err, ledger.ErrNoNamespace) {
		return err
	}
	r.n.Moves.vanished()
	return fmt.Errorf("%w: %w", ledger.ErrClosed, err)
}
