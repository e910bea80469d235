package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// ErrDraining is the cause of a run's context when the node was told to stop and the drain time
// is over.
var ErrDraining = errors.New("the node is stopping and its drain time is over")

// runner carries granted runs from the grant to the settled outcome, a goroutine each. A run's
// slot is given back when its outcome is settled.
type runner struct {
	n      *Node
	ctx    context.Context // parent of every run's context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // runs, to the settled outcome
	calls  sync.WaitGroup // job functions
	going  atomic.Int64   // how many job functions run
	live   sync.Map       // ids of the runs here, to their end; at most as many as there are slots
}

func newRunner(n *Node) *runner {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &runner{n: n, ctx: ctx, cancel: cancel}
}

// start begins a granted run; with back set, it hands the run back instead. A run that is here already
// is not begun again: a sweep that looked before a pending run was granted has the engine ask for it
// once more, and it is granted once more, for the same node asks for the same run.
func (r *runner) start(g grant, back bool) {
	id := g.lease.Run
	if _, here := r.live.LoadOrStore(id, true); here {
		r.n.slots.give()
		return
	}
	r.calls.Add(1)
	r.wg.Go(func() {
		defer r.n.slots.give()
		defer r.live.Delete(id)
		lease := r.n.keeper.Hold(r.ctx, locking.Grant{
			Name: g.job.Name, Owner: g.lease.Run, Token: g.lease.Token, TTL: g.job.TTL,
			Asked: g.asked, Slept: g.slept,
		})
		defer lease.Close()
		if report, ran := r.execute(g, lease, back); ran {
			r.settle(g, report)
			r.n.engine.freed(g.job)
		}
	})
}

// execute calls the function, unless the run is to be handed back or its lease is over already.
func (r *runner) execute(g grant, lease *locking.Lease, back bool) (ledger.Report, bool) {
	defer r.calls.Done()
	if back || !lease.Valid() {
		r.handBack(g, lease)
		return ledger.Report{}, false
	}
	r.going.Add(1)
	defer r.going.Add(-1)
	return r.call(g, lease), true
}

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

// call runs the job's function and reports how it ended.
func (r *runner) call(g grant, lease *locking.Lease) ledger.Report {
	run := runOf(g, r.n.cfg.Name)
	ctx := lease.Context()
	if g.job.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.job.Timeout, jobs.ErrTimeout)
		defer cancel()
	}
	started := r.n.clock.now()
	r.n.log.Info("run started", "job", g.job.Name, "tick", run.Tick(), "token", run.Token(),
		"lag", started.Sub(run.Tick()), "run", run.ID(), "trigger", run.Trigger().String())
	told := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, locking.ErrLeaseLost) {
			r.n.log.Warn("lease lost while the run was going; its context was cancelled", "job", g.job.Name, "tick", run.Tick(),
				"run", run.ID(), "token", run.Token(), "cause", cause)
		}
	})
	err := r.invoke(ctx, g.job, run)
	told()
	ended := r.n.clock.now()
	if out := run.Output(); len(out) > 0 {
		r.n.log.Debug("run output", "job", g.job.Name, "run", run.ID(), "output", string(out))
	}
	report := ledger.Report{
		Job: g.job.Name, Run: run.ID(), Outcome: outcome(ctx, err), Started: started.UnixMilli(), Ended: ended.UnixMilli(), Tries: 1,
	}
	if err != nil {
		report.Error = err.Error()
	}
	return report
}

// invoke calls the function and turns a panic into an error.
func (r *runner) invoke(ctx context.Context, j *job, run *jobs.Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.n.log.Error("job function panicked", "job", j.Name, "run", run.ID(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return j.Func(ctx, run)
}

func runOf(g grant, node string) *jobs.Run {
	info := jobs.RunInfo{
		ID: g.lease.Run, Job: g.job.Name, Tick: time.UnixMilli(g.lease.Tick).UTC(), Shard: g.lease.Shard, Shards: g.lease.Shards,
		Attempt: g.lease.Attempt, Try: 1, Token: g.lease.Token, Node: node, Payload: g.lease.Payload,
	}
	// A trigger that this version does not know reads as schedule; the record keeps its word.
	_ = info.Trigger.UnmarshalText([]byte(g.lease.Trigger))
	return jobs.NewRun(info)
}

// outcome names how a function ended. What it returned counts first: a function that finished
// its work has succeeded, whatever became of its context meanwhile.
func outcome(ctx context.Context, err error) jobs.Outcome {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return jobs.OutcomeSucceeded
	case errors.Is(cause, locking.ErrLeaseLost):
		return jobs.OutcomeLost
	case errors.Is(cause, jobs.ErrTimeout):
		return jobs.OutcomeTimedOut
	case errors.Is(cause, ErrDraining):
		return jobs.OutcomeCancelled
	default:
		return jobs.OutcomeFailed
	}
}

// settle hands the report to the settler and waits until it is answered, with the lease kept
// alive meanwhile.
func (r *runner) settle(g grant, report ledger.Report) {
	log := r.n.log.With("job", g.job.Name, "tick", time.UnixMilli(g.lease.Tick).UTC(), "run", report.Run, "outcome", report.Outcome.String())
	word, err := r.n.settler.settle(report)
	switch {
	case err != nil:
		log.Error("run ended, but its outcome could not be recorded; its lease will lapse and be recorded as abandoned", "error", err)
	case word == ledger.Settled && report.Outcome == jobs.OutcomeSucceeded:
		log.Info("run ended", "duration", time.Duration(report.Ended-report.Started)*time.Millisecond)
	case word == ledger.Settled:
		log.Warn("run ended", "duration", time.Duration(report.Ended-report.Started)*time.Millisecond, "error", report.Error)
	case word == ledger.Lost:
		log.Warn("run ended too late: somebody else had ended it, this report is kept beside that outcome", "answer", string(word))
	case word == ledger.NoSuchRun:
		log.Error("run ended, and nobody knows it any more: Redis lost its record, its outcome is only here", "error", report.Error)
	default:
		log.Error("run ended, but a record of its job is not understood by this version and was left alone; its outcome is only here", "answer", string(word), "error", report.Error)
	}
}

// freshID is the id under which a run that is handed back becomes pending again. It follows from
// the old one, so that handing back twice names one run and not two, and so that ids are drawn by
// the engine alone: the runs' goroutines have no order among them.
func freshID(run string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String() }

// handBack returns a run whose function was never called to pending, so that another node takes
// it at once.
func (r *runner) handBack(g grant, lease *locking.Lease) {
	back := []ledger.Return{{Job: g.job.Name, Run: g.lease.Run, Fresh: freshID(g.lease.Run)}}
	log := r.n.log.With("job", g.job.Name, "tick", time.UnixMilli(g.lease.Tick).UTC(), "run", g.lease.Run)
	for try := range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		words, err := r.n.ledger.Unclaim(ctx, back)
		cancel()
		if err == nil {
			log.Info("run handed back before it was started", "answer", string(words[0]), "lease_valid", lease.Valid())
			return
		}
		r.n.health.fail("unclaim", err)
		pause(context.Background(), backoff(g.lease.Run, try))
	}
	log.Warn("run could not be handed back; its lease will lapse and be recorded as abandoned")
}
