package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// registrarConfig holds the dependencies of a registrar.
type registrarConfig struct {
	id, namespace, generation string
	ledger                    *ledger.Ledger
	roster                    *roster.Roster
	lanes                     registrarLanes
	jobs                      *work.Jobs
	announcer                 *announcer
	record                    *ControlRecord
	view                      *LatestView
	moves                     *Moves
	state                     *NodeState
	clock                     Clock
	health                    Health
	inbox                     *agenda.Inbox
	failoverHold              time.Duration
	log                       *slog.Logger

	// Each channel holds one signal.
	beat        chan<- struct{} // send a heartbeat now
	redisLost   chan struct{}   // Redis may have lost data: register every job again
	promoted    chan struct{}   // the epoch of promotions has changed
	viewChanged chan struct{}   // the view of the cluster has changed
}

// registrarLanes are the lanes, as a registrar needs them.
type registrarLanes interface {
	At(role string, part int, call func() error) error
	Registered(j *work.Job, cursor int64)
	Displaced(j *work.Job)
	Resample(ctx context.Context)
	MarkUnreachable(role string, err error, parts []int)
}

// Health learns how the calls of a role go.
type Health interface {
	OK(role string)
	Fail(role string, err error)
}

// registrar stores the node's definitions, and tries unclaimable jobs again: at once when the
// ledger has lost them, otherwise every RosterTTL. So after a rollback the older definition counts
// again when no living node holds the newer one. Jobs of another generation are tried when a
// promotion begins, goes on or ends, see standby.go.
type registrar struct {
	registrarConfig
	unclaimable          map[*work.Job]string // why; every job at first
	has                  map[*work.Job]bool   // the node's jobs, as last passed to this role
	changed              chan struct{}        // holds one signal: the node's jobs have changed
	rivals               map[*work.Job]string // for superseded jobs, the digests of the stored definitions
	firstPending         bool                 // the first registration is still to come
	rejectedSignal       chan struct{}        // holds one signal: rejected is not empty
	sendTexts            bool                 // the current registration sends texts, because the ledger lacks some
	freshView            *View                // the cluster, read after the answer that is being judged; nil: not yet
	waiting              waiting
	stored               map[*work.Job]bool // jobs on standby whose definitions are stored
	lostBeforeRegistered []*work.Job        // stored jobs that this node lost before their registration was answered

	refollowed time.Time
	lossLogged time.Time // when a loss was last logged

	mu       sync.Mutex
	rejected []work.Rejection // from the agenda, at most one a job until it is registered again
}

func newRegistrar(c registrarConfig) *registrar {
	r := &registrar{
		registrarConfig: c, unclaimable: make(map[*work.Job]string, c.jobs.Len()), firstPending: true, stored: make(map[*work.Job]bool),
		rejectedSignal: make(chan struct{}, 1), rivals: make(map[*work.Job]string), changed: make(chan struct{}, 1),
	}
	r.changes()
	return r
}

// run registers jobs until ctx ends.
func (r *registrar) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if r.jobs.Len() == 0 {
		r.firstDone() // there will be no answer
	}
	for try := 0; ; {
		what, some := r.wait(ctx, timer)
		switch {
		case ctx.Err() != nil:
			return
		case !some:
			continue
		}
		err := r.once(ctx, what)
		next := r.pace()
		if err != nil && ctx.Err() == nil {
			if !errors.Is(err, lane.ErrBreaker) { // the lane has logged it
				r.moves.refused(err)
				r.health.Fail("register", err)
			}
			next, try = wait.Backoff(r.id, try), try+1
		} else if err == nil {
			try = 0
		}
		timer.Reset(next)
	}
}

// once tries unclaimable jobs, and passes the claimable ones to the agenda.
func (r *registrar) once(ctx context.Context, what scope) error {
	err := cmp.Or(r.announcer.announce(ctx), r.announcer.tidy(ctx))
	if err != nil {
		return err
	}
	if err := r.recheckLost(ctx); err != nil {
		return err
	}
	if err := r.refollow(ctx); err != nil || len(r.unclaimable) == 0 && !r.waiting.checks {
		r.count()
		return err
	}
	what, err = r.widen(ctx, what)
	if err != nil {
		return err
	}
	list := make([]*work.Job, 0, len(r.unclaimable))
	for j, why := range r.unclaimable { // register sorts them
		if what == tryAll || what == tryNonStandby && why != work.Standby {
			list = append(list, j)
		}
	}
	began := time.Now()
	var left error // for partitions whose masters are unreachable
	if len(list) > 0 {
		control, err := r.record.restore(ctx)
		silent := r.unreachable(&err)
		if err != nil {
			return err
		}
		r.state.Control.Store(&control)
		list = slices.DeleteFunc(list, func(j *work.Job) bool { return slices.Contains(silent, j.Part) })
		if left = r.try(ctx, list); left != nil && !errors.Is(left, lane.ErrBreaker) {
			return left
		}
		if len(silent) > 0 {
			left = lane.ErrBreaker
		}
		r.moves.accepted()
	}
	r.waiting.tried(what, time.Since(began))
	r.noteStandby()
	if err := r.storeStandby(ctx); err != nil {
		return err
	}
	r.health.OK("register")
	return left
}

// unreachable takes an UnreachableError out of err, notes it, and returns its partitions.
func (r *registrar) unreachable(err *error) []int {
	var e *ledger.UnreachableError
	if !errors.As(*err, &e) {
		return nil
	}
	r.lanes.MarkUnreachable("register", e, e.Parts)
	*err = nil
	return e.Parts
}

// retrySealed is the scope that shows whether a move still keeps the namespace closed: all jobs
// that were refused for it, and at least one job.
func (r *registrar) retrySealed() scope {
	for _, j := range r.jobs.All() {
		if r.unclaimable[j] != work.Standby {
			r.unclaimable[j] = cmp.Or(r.unclaimable[j], work.Sealed)
			return tryNonStandby
		}
	}
	return tryAll
}

// try registers unclaimable jobs, except in partitions whose masters are unreachable.
func (r *registrar) try(ctx context.Context, list []*work.Job) error {
	results, err := r.register(ctx, list)
	if err != nil && !errors.Is(err, lane.ErrBreaker) {
		return err
	}
	results, failed := r.recheck(ctx, results)
	if failed != nil {
		return failed
	}
	for _, f := range results {
		was := r.unclaimable[f.job]
		if delete(r.rivals, f.job); f.rival != "" {
			r.rivals[f.job] = f.rival
		}
		if f.reason == "" {
			delete(r.unclaimable, f.job)
			r.lanes.Registered(f.job, f.cursor)
			continue
		}
		if f.reason == work.Superseded || f.reason == work.Standby {
			r.lanes.Displaced(f.job)
		}
		r.unclaimable[f.job] = f.reason
		if was != f.reason && f.reason != work.Standby {
			r.log.Warn("job is not claimed by this node", "job", f.job.Name, "why", f.reason, "detail", f.detail)
		}
	}
	var in agenda.Registered
	for _, f := range results {
		if f.reason == "" {
			in.Jobs, in.Cursors = append(in.Jobs, f.job), append(in.Cursors, f.cursor)
		}
	}
	r.inbox.Send(in)
	r.firstDone()
	return err
}

// refollowEvery is how often a node repeats which jobs its jobs follow.
const refollowEvery = time.Minute

// refollow repeats which jobs the node's jobs follow. Redis may have lost it, or two versions of a
// job may have left the wrong one during a deploy.
func (r *registrar) refollow(ctx context.Context) error {
	if time.Since(r.refollowed) < refollowEvery || r.moves.isClosed() {
		return nil
	}
	for _, j := range r.jobs.All() {
		if r.unclaimable[j] != "" {
			continue
		}
		for _, upstream := range j.After {
			err := r.followOne(ctx, upstream, j.Name)
			if err != nil && !errors.Is(err, lane.ErrBreaker) && (!errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrClosed)) { // refused: there are too many followers, which its registration logs
				return err
			}
		}
	}
	r.refollowed = time.Now()
	return nil
}
