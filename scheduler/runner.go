package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// ErrDraining is the cause of a run's context when the node was told to stop and the drain time
// is over.
var ErrDraining = errors.New("the node is stopping and its drain time is over")

// runner carries granted runs from the grant to the settled outcome, a goroutine each.
type runner struct {
	n      *Node
	ctx    context.Context // parent of every run's context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // runs, to the settled outcome
	calls  sync.WaitGroup // job functions, with the waits between their tries
	going  atomic.Int64   // how many job functions run
	live   sync.Map       // the runs here, *life by id, to their end; as many as there are slots at most, and those that lent theirs
}

func newRunner(n *Node) *runner {
	ctx, cancel := context.WithCancelCause(n.values)
	return &runner{n: n, ctx: ctx, cancel: cancel}
}

// life is one granted run on this node.
//
//	granted ──► begin ──► call ──► tries ──► end ──► leave
//	              │                ▲   │      ▲       ▲
//	              │                └───┘ wait │       │
//	              ├─ cancelled already ───────┘       │
//	              └─ handed back ─────────────────────┘
type life struct {
	g      grant
	parent context.Context // ended by cancelRun and by a drain
	cancel context.CancelCauseFunc

	// The rest belongs to the goroutine that carries the run.
	lease   *locking.Lease
	ctx     context.Context // the function's
	undo    func()          // what call set up
	told    sync.Once       // that the lease was lost
	started time.Time
	tries   int
	calling bool      // the function has not returned
	run     *jobs.Run // of the last try
	err     error     // of the last try
	before  []string  // the errors of those before it
}

// start begins a granted run; with back set, it hands the run back instead. A run that is here already
// is not begun again: a sweep that looked before a pending run was granted has the engine ask for it
// once more, and it is granted once more, for the same node asks for the same run.
func (r *runner) start(g grant, back bool) {
	//guard:drain-hands-back P7 a node that drains hands back what it is granted
	if r.n.draining.Load() {
		back = true
	}
	l := r.admit(g)
	if l == nil {
		r.n.slots.give()
		return
	}
	// It is among those that are here, so from now on a new server is told of it; a server that was noticed before was not.
	back = back || !r.n.failover.noticed(g.server, g.job.part)
	r.wg.Go(func() { r.begin(l, back) })
}

// grants are the runs that are here.
func (r *runner) grants() []grant {
	var all []grant
	r.live.Range(func(_, l any) bool {
		all = append(all, l.(*life).g)
		return true
	})
	return all
}

// admit enters a run among those that are here; nil when it is here already.
func (r *runner) admit(g grant) *life {
	l, id := &life{g: g}, g.lease.Run
	l.parent, l.cancel = context.WithCancelCause(r.ctx)
	if _, here := r.live.LoadOrStore(id, l); here {
		l.cancel(nil)
		return nil
	}
	r.calls.Add(1)
	return l
}

// begin holds the lease and calls the function, unless the run was cancelled meanwhile, is to be handed
// back, or its lease is over already.
func (r *runner) begin(l *life, back bool) {
	g := l.g
	lease := r.n.keeper.Hold(l.parent, locking.Grant{
		Name: g.job.Name, Owner: g.lease.Run, Token: g.lease.Token, TTL: g.job.TTL,
		Asked: g.asked, Slept: g.slept,
	})
	l.lease, l.started = lease, r.n.clock.now()
	if cause := context.Cause(l.parent); errors.Is(cause, ErrDraining) {
		back = true
	} else if cause != nil {
		l.ctx, l.err = l.parent, cause
		r.end(l)
		return
	}
	//guard:lease-over-not-called P4 the function is not called under a lease that is over
	if !lease.Valid() {
		back = true
	}
	if back {
		g.back = cmp.Or(g.back, "the node drains, the lease is over, or the server another one")
		lent := r.handBack(g, lease)
		r.calls.Done()
		r.leave(l)
		r.n.engine.returned(lent)
		return
	}
	r.call(l)
}

// leave ends what admit began.
func (r *runner) leave(l *life) {
	l.lease.Close()
	l.cancel(nil)
	r.live.Delete(l.g.lease.Run)
}

// cancelRun ends the context of a run with a cause, if the run is here, or those of all shards of a tick that are
// here. The first cause stays.
func (r *runner) cancelRun(id string, cause error) {
	if l, ok := r.live.Load(id); ok {
		l.(*life).cancel(cause)
		return
	}
	r.live.Range(func(_, l any) bool {
		if shard := l.(*life); shard.g.lease.Of == id {
			shard.cancel(cause)
		}
		return true
	})
}

// cancelled ends a run that somebody wants ended, if it is here.
func (r *runner) cancelled(c ledger.Cancel) {
	if c.Author == "" {
		r.cancelRun(c.Run, jobs.ErrReplaced)
		return
	}
	r.cancelRun(c.Run, &cancellation{c.Author, c.Reason})
}

// cancellation is the cause of a run's context when an operator wanted the run ended.
type cancellation struct{ author, reason string }

// Error is also the reason that is recorded, in the words of reason_of in prelude.lua.
func (c *cancellation) Error() string {
	if c.reason == "" {
		return "cancelled by " + c.author
	}
	return "cancelled by " + c.author + ": " + c.reason
}

func (c *cancellation) Unwrap() error { return jobs.ErrCancelled }

// drain waits for the runs. After d their contexts end; a function that does not end within
// cancelGrace then is an error. Outcomes that Redis does not take within settleGrace are none: the
// leases lapse and the runs are recorded as abandoned.
func (r *runner) drain(d time.Duration) error {
	settled, ended := closed(&r.wg), closed(&r.calls)
	if within(settled, d) {
		return nil
	}
	r.cancel(ErrDraining)
	if !within(ended, cancelGrace) {
		return fmt.Errorf("%d job functions did not end within %s after their contexts did; their leases will lapse and be recorded as abandoned",
			r.going.Load(), cancelGrace)
	}
	if !within(settled, settleGrace) {
		r.n.log.Warn("the node stops with outcomes that Redis did not take; the leases lapse and the runs are recorded as abandoned",
			"runs", r.n.slots.used())
	}
	return nil
}

// closed is a channel that closes when the group is done.
func closed(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// within says whether done closed before d was over.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// handBacks is how often it is tried again at least to hand back a run.
const handBacks = 4

// handBack returns a run whose function was never called to pending, so that another node takes
// it at once. While Redis does not answer it is repeated for as long as the lease is valid, unless the node leaves, and while that
// is a master of a Cluster, the run lends its slot.
func (r *runner) handBack(g grant, lease *locking.Lease) (lent bool) {
	back := []ledger.Return{{Job: g.job.Name, Run: g.lease.Run, Token: g.lease.Token}}
	log := r.n.log.With("job", g.job.Name, "tick", time.UnixMilli(g.lease.Tick).UTC(), "run", g.lease.Run)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		words, err := r.n.ledger.Unclaim(ctx, back)
		cancel()
		err = r.n.quiet.full(err)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.back, "answer", string(words[0]), "lease_valid", lease.Valid())
			return lent
		}
		r.n.quiet.fail("unclaim", err, g.job.part)
		if !lent && r.n.quiet.of(g.job.part) {
			lent = true
			r.n.engine.lend(1)
		}
		if try >= handBacks && !(errors.Is(err, locking.ErrUnreachable) && lease.Valid() && !r.n.leaving.Load()) {
			log.Warn("run may not be handed back; if Redis did not take it, its lease lapses and it is recorded as abandoned", "error", err)
			return lent
		}
		pause(context.Background(), backoff(g.lease.Run, try))
	}
}
