// Package runner carries out granted runs. A run waits until its tick is due, calls its job's
// function, retries, ends the function's context when the lease or the time is over, and reports
// the outcome.
package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/admission"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrDraining is the cause with which a run's context ends when the node stops and the drain
// timeout is over.
var ErrDraining = errors.New("the node is stopping and its drain time is over")

// Redis is the runner's side of the lanes.
type Redis interface {
	// Hold keeps the lease of a run alive until it is closed or lost.
	Hold(parent context.Context, part int, g locking.Grant) *locking.Lease
	// Begins reports whether a run may begin: whether the server that granted it is still the
	// partition's master. A newer master got this node's report of its runs without that run.
	Begins(g work.Grant) bool
	// Settle records how a run ended. It calls Settled with the answer, or with an error when the
	// node gives up. It does not block.
	Settle(g work.Grant, r settle.Report, then work.SettleListener)
	// Tail keeps the latest output of runs of a partition.
	Tail(ctx context.Context, part int, tails []settle.Tail) error
	Checkpoints
	// HandBack returns a run to pending whose function was never called. valid reports whether its
	// lease is. The caller calls over, which releases the slot, after it has removed the run.
	HandBack(g work.Grant, valid func() bool) (over func())
}

// Checkpoints are kept for the attempts after a run.
type Checkpoints interface {
	// Save keeps a run's checkpoint, in place of the checkpoint of an attempt before it, "" for
	// none. It returns locking.ErrLeaseLost when the run has its lease no longer.
	Save(ctx context.Context, run ledger.Run, before string, data []byte) error
	// Saved reads the newest checkpoint of the attempts before a run, and its run's id; "" and nil
	// for none. With ledger.ErrUnknownFormat part of it cannot be read.
	Saved(ctx context.Context, run ledger.Run) (by string, data []byte, err error)
}

// Listener receives the events of runs. It does not block.
type Listener interface {
	Claimed(l ledger.Run)
	Started(l ledger.Run, at time.Time)
	LeaseLost(l ledger.Run, started time.Time)
	Stalled(l ledger.Run, started time.Time)
	Settled(l ledger.Run, r settle.Report, recorded bool)
}

// Machine learns whether runs can begin on this machine.
type Machine interface {
	// Suspend notes that one could not. It returns for how long the node takes no runs; 0: it takes
	// none already.
	Suspend(why error, now time.Time) time.Duration
	// Began notes that one did that was started at an instant. It reports whether that is the first
	// one after a pause.
	Began(started time.Time) bool
}

// Config holds the dependencies of a runner.
type Config struct {
	Node     string           // the node's name
	Values   context.Context  // carries the values that the jobs' functions see; it does not end
	Now      func() time.Time // Redis' time
	Past     func() time.Time // an instant that Redis' clock has certainly reached
	Usable   func() error     // nil while this node believes Redis' clock
	Active   *ActiveRuns
	Redis    Redis
	Listener Listener
	Entry    *admission.Admission // for jobs that need more than their leases
	Machine  Machine
	Log      *slog.Logger
}

// Runner carries runs from the grant to the settled outcome, each in its own goroutine.
type Runner struct {
	Config
	ctx      context.Context // parent of every run's context
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup // runs, to the settled outcome
	calls    sync.WaitGroup // calls of job functions, with the waits between tries
	running  atomic.Int64   // functions that are running
	draining atomic.Bool    // no function is called any more
	refused  chan struct{}  // closed with draining
	starts   *starts
	changed  chan struct{} // holds one signal: there is another run
	recent   recentGrants
	faults   machineFaults

	leasesLost atomic.Int64 // while their functions were running
	stalled    atomic.Int64 // runs that made no progress for too long, however often each
	tails      tails
}

// LeasesLost is how many runs have lost their leases while their functions were running.
func (r *Runner) LeasesLost() int64 { return r.leasesLost.Load() }

// Stalled is how often a run has made no progress for its job's StallAfter.
func (r *Runner) Stalled() int64 { return r.stalled.Load() }

// New makes a runner.
func New(c Config) *Runner {
	ctx, cancel := context.WithCancelCause(c.Values)
	return &Runner{Config: c, ctx: ctx, cancel: cancel, starts: newStarts(c.Past), refused: make(chan struct{}), changed: make(chan struct{}, 1), tails: tails{due: make(chan struct{}, 1)}}
}

// activeRun is one granted run on this node.
//
//	granted ──► begin ──► call ──► tries ──► end ──► leave
//	              │                ▲   │      ▲       ▲
//	              │                └───┘ wait │       │
//	              ├─ cancelled already ───────┘       │
//	              └─ handed back ─────────────────────┘
type activeRun struct {
	g     work.Grant
	lease *locking.Lease     // a cancel and a drain end its context
	held  *admission.Permits // its permits beside the lease; nil: none
	time  runLease           // what the function and its command have left of both
	due   *instant           // when the run is to begin; nil: at once
	late  string             // why it could not start within start_within

	calling atomic.Bool              // the function is being called with ctx
	writing atomic.Pointer[jobs.Run] // of the try that is going
	tail    sentTail
	store   *runStore                  // its checkpoint and its progress
	inCall  atomic.Pointer[invocation] // nil: the function has returned

	// The rest belongs to the run's goroutine.
	ctx         context.Context    // the function's
	cancel      context.CancelFunc // of ctx, if the job has a timeout
	logLostOnce sync.Once          // logs once that the lease was lost
	started     time.Time          // by Redis' clock
	began       time.Time          // the same instant on the monotonic clock
	slept       time.Duration      // how long the machine had slept by then
	called      time.Time          // when the last try was, on the monotonic clock
	tries       int
	inFunction  bool      // the function has not returned
	run         *jobs.Run // of the last try, or of the first that is to come
	err         error     // of the last try
	earlier     []string  // the errors of the tries before it
	overran     overrun   // the last one
}

// Start begins a granted run, or hands it back when the grant has a reason to. False: the run is
// here already. That happens when a sweep from before the grant makes the agenda claim the run once
// more, for a repeated claim gets the same grant.
func (r *Runner) Start(g work.Grant) bool {
	//guard:grant-counted-once P1 a pending run whose grant arrives twice is begun once
	if g.WasPending && !r.recent.first(g.Lease.ID, g.Lease.Token) {
		return false
	}
	back := g.HandBackReason != ""
	//guard:drain-hands-back P7 a node that drains hands back what it is granted
	if r.draining.Load() {
		back = true
	}
	l := r.admit(g)
	if l == nil {
		return false
	}
	// The run is active from here on, so a server that is noticed from now on gets a report of it;
	// a server noticed before got a report without it.
	back = back || !r.Redis.Begins(g)
	r.Listener.Claimed(g.Lease)
	go r.begin(l, back)
	return true
}

// admit adds a run to the active ones; nil when it is here already.
func (r *Runner) admit(g work.Grant) *activeRun {
	lease := r.Redis.Hold(r.ctx, g.Job.Part, locking.Grant{
		Name: g.Job.Name, Owner: g.Lease.ID, Token: g.Lease.Token, TTL: g.Job.TTL, First: g.FirstTTL, Asked: g.FirstSent, Slept: g.Suspended,
	})
	l := &activeRun{g: g, lease: lease, time: runLease{lease: lease}, store: newRunStore(r.Config, g, lease.Valid)}
	if _, here := r.Active.runs.LoadOrStore(g.Lease.ID, l); here {
		l.lease.Close()
		return nil
	}
	l.due = r.starts.wait(g.StartAt)
	wait.Signal(r.changed)
	r.wg.Add(1)
	r.calls.Add(1)
	return l
}

// begin calls the function. It does not when the run was cancelled meanwhile, is to be handed back,
// or has no valid lease.
func (r *Runner) begin(l *activeRun, back bool) {
	l.run = r.runOf(l, 1) // prepared before the tick is due
	l.writing.Store(l.run)
	back = r.await(l, back) || !r.enter(l, back)
	l.started, l.began, l.slept = r.Now(), time.Now(), locking.Slept()
	switch cause := context.Cause(l.lease.Context()); {
	case errors.Is(cause, ErrDraining):
		back = true
	case cause != nil && !errors.Is(cause, locking.ErrLeaseLost):
		l.ctx, l.err = l.lease.Context(), cause
		r.end(l)
		return
	}
	//guard:lease-over-not-called P4 the function is not called under a lease that is over
	if !l.lease.Valid() || l.held != nil && l.held.Context().Err() != nil {
		back = true
	}
	if back {
		r.handBack(l, cmp.Or(l.g.HandBackReason, l.late, "the node drains or does not believe Redis' clock, the lease is over, or another server has taken over"))
		return
	}
	r.call(l)
}

// handBack returns a run to pending whose function has done nothing.
func (r *Runner) handBack(l *activeRun, why string) {
	g := l.g // other goroutines read l.g
	g.HandBackReason = why
	r.calls.Done() // a drain waits for Redis' answer as for a report's
	over := r.Redis.HandBack(g, l.lease.Valid)
	r.leave(l)
	over()
	r.wg.Done()
}

// await waits until the run's tick is due, its context or lease ends, the node drains, or does not
// believe Redis' clock. It reports whether the run is to be handed back.
func (r *Runner) await(l *activeRun, back bool) bool {
	if back || l.due == nil {
		return back
	}
	came := true
	//guard:start-when-due P1 a run that was granted ahead starts when its tick is due
	select {
	case <-l.due.over:
		came = l.due.came
	case <-l.lease.Context().Done():
	}
	return !came || r.draining.Load()
}

// leave undoes admit.
func (r *Runner) leave(l *activeRun) {
	if l.held != nil {
		l.held.Release()
	}
	l.lease.Close()
	r.Active.runs.Delete(l.g.Lease.ID)
}

// cancellation is the cause of a run's context when an operator cancelled the run.
type cancellation struct{ author, reason string }

// Error is also the recorded reason, with the same words as reason_of in cancels.lua.
func (c *cancellation) Error() string {
	if c.reason == "" {
		return "cancelled by " + c.author
	}
	return "cancelled by " + c.author + ": " + c.reason
}

func (c *cancellation) Unwrap() error { return jobs.ErrCancelled }
