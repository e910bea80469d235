// Package runner carries granted runs: each waits until its tick is due, calls its job's function with its tries, ends
// its context when it must, and reports how it went.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// cancelGrace is how long a function may take to end after its context was cancelled by a drain.
	cancelGrace = 10 * time.Second
	// settleGrace is how long Redis may take, after that, to take the outcomes.
	settleGrace = 2 * time.Second
	// sayAgain is when it is said that a function goes on after its context has ended.
	sayAgain = 10 * time.Second
)

// ErrDraining is the cause of a run's context when the node was told to stop and the drain time
// is over.
var ErrDraining = errors.New("the node is stopping and its drain time is over")

// Redis is what the runner asks of Redis' side.
type Redis interface {
	// Hold keeps the lease of a run in a partition alive, until it is closed or lost.
	Hold(parent context.Context, part int, g locking.Grant) *locking.Lease
	// Begins says whether a run may begin: that its server is the one that the node has noticed last. What another one granted it comes
	// too late to be told.
	Begins(g work.Grant) bool
	// Settle records how a run ended, and calls Settled when that is answered, or with an error when the node gives up. It does not block.
	Settle(g work.Grant, r ledger.Report, then work.Settled)
	// HandBack returns a run whose function was never called to pending. valid says whether its lease is; over is to be called when
	// the run is here no more, and gives back its slot.
	HandBack(g work.Grant, valid func() bool) (over func())
}

// Listener is told what becomes of runs. It does not block.
type Listener interface {
	Claimed(l ledger.Lease)
	Started(l ledger.Lease, at time.Time)
	LeaseLost(l ledger.Lease, started time.Time)
	Settled(l ledger.Lease, r ledger.Report, recorded bool)
}

// Config is what a runner needs.
type Config struct {
	Node     string           // its name
	Values   context.Context  // whose values the jobs' functions see; it does not end
	Now      func() time.Time // Redis' time
	Past     func() time.Time // an instant that Redis' clock has certainly reached
	Live     *Live
	Redis    Redis
	Listener Listener
	Log      *slog.Logger
}

// Runner carries runs from the grant to the settled outcome, a goroutine each.
type Runner struct {
	Config
	ctx      context.Context // parent of every run's context
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup // runs, to the settled outcome
	calls    sync.WaitGroup // job functions, with the waits between their tries
	going    atomic.Int64   // how many job functions run
	draining atomic.Bool    // no function is called any more
	starts   *starts
	changed  chan struct{} // holds one signal: there is another run
	news     recentGrants
}

// New makes a runner.
func New(c Config) *Runner {
	ctx, cancel := context.WithCancelCause(c.Values)
	return &Runner{Config: c, ctx: ctx, cancel: cancel, starts: newStarts(c.Past), changed: make(chan struct{}, 1)}
}

// life is one granted run on this node.
//
//	granted ──► begin ──► call ──► tries ──► end ──► leave
//	              │                ▲   │      ▲       ▲
//	              │                └───┘ wait │       │
//	              ├─ cancelled already ───────┘       │
//	              └─ handed back ─────────────────────┘
type life struct {
	g     work.Grant
	lease *locking.Lease  // whose context a cancel and a drain end
	due   <-chan struct{} // closed when it is to begin; nil: at once

	calling atomic.Bool // the function is being called, under ctx
	over    time.Time   // when Watch saw first that ctx had ended
	said    bool        // that the function goes on

	// The rest belongs to the goroutine that carries the run.
	ctx     context.Context    // the function's
	cancel  context.CancelFunc // of ctx, if the job has a timeout
	told    sync.Once          // that the lease was lost
	started time.Time
	tries   int
	inside  bool      // the function has not returned
	run     *jobs.Run // of the last try, or of the first that is to come
	err     error     // of the last try
	before  []string  // the errors of those before it
}

// Start begins a granted run, or hands it back when the grant says why. A run that is here already
// is not begun again, which is false: a sweep that looked before a pending run was granted has the agenda ask for it
// once more, and it is granted once more, for the same node asks for the same run.
func (r *Runner) Start(g work.Grant) bool {
	//guard:grant-heard-once P1 a pending run whose grant is heard of twice is begun once
	if g.Waited && !r.news.first(g.Lease.Run, g.Lease.Token) {
		return false
	}
	back := g.Back != ""
	//guard:drain-hands-back P7 a node that drains hands back what it is granted
	if r.draining.Load() {
		back = true
	}
	l := r.admit(g)
	if l == nil {
		return false
	}
	// It is among those that are here, so from now on a new server is told of it; a server that was noticed before was not.
	back = back || !r.Redis.Begins(g)
	r.Listener.Claimed(g.Lease)
	go r.begin(l, back)
	return true
}

// admit enters a run among those that are here; nil when it is here already.
func (r *Runner) admit(g work.Grant) *life {
	l := &life{g: g, lease: r.Redis.Hold(r.ctx, g.Job.Part, locking.Grant{
		Name: g.Job.Name, Owner: g.Lease.Run, Token: g.Lease.Token, TTL: g.Job.TTL, First: g.First, Asked: g.Asked, Slept: g.Slept,
	})}
	if _, here := r.Live.runs.LoadOrStore(g.Lease.Run, l); here {
		l.lease.Close()
		return nil
	}
	l.due = r.starts.wait(g.At)
	wait.Signal(r.changed)
	r.wg.Add(1)
	r.calls.Add(1)
	return l
}

// begin calls the function, unless the run was cancelled meanwhile, is to be handed
// back, or its lease is over already.
func (r *Runner) begin(l *life, back bool) {
	l.run = r.runOf(l.g, 1) // made before the tick is due
	back = r.await(l, back)
	l.started = r.Now()
	switch cause := context.Cause(l.lease.Context()); {
	case errors.Is(cause, ErrDraining):
		back = true
	case cause != nil && !errors.Is(cause, locking.ErrLeaseLost):
		l.ctx, l.err = l.lease.Context(), cause
		r.end(l)
		return
	}
	//guard:lease-over-not-called P4 the function is not called under a lease that is over
	if !l.lease.Valid() {
		back = true
	}
	if back {
		g := l.g // others read it
		g.Back = cmp.Or(g.Back, "the node drains, the lease is over, or the server another one")
		over := r.Redis.HandBack(g, l.lease.Valid)
		r.calls.Done()
		r.leave(l)
		over()
		r.wg.Done()
		return
	}
	r.call(l)
}

// await waits until the run's tick is due, unless its context or its lease ends before, or the node drains. It says whether the run is to be
// handed back.
func (r *Runner) await(l *life, back bool) bool {
	if back || l.due == nil {
		return back
	}
	//guard:start-when-due P1 a run that was granted ahead starts when its tick is due
	select {
	case <-l.due:
	case <-l.lease.Context().Done():
	}
	return r.draining.Load()
}

// leave ends what admit began.
func (r *Runner) leave(l *life) {
	l.lease.Close()
	r.Live.runs.Delete(l.g.Lease.Run)
}

// cancellation is the cause of a run's context when an operator wanted the run ended.
type cancellation struct{ author, reason string }

// Error is also the reason that is recorded, in the words of reason_of in cancels.lua.
func (c *cancellation) Error() string {
	if c.reason == "" {
		return "cancelled by " + c.author
	}
	return "cancelled by " + c.author + ": " + c.reason
}

func (c *cancellation) Unwrap() error { return jobs.ErrCancelled }

// Refuse has the runner hand back whatever it is granted from now on, and what has not begun.
func (r *Runner) Refuse() {
	r.draining.Store(true)
	r.starts.end()
}

// Drain waits for the runs. After d their contexts end; a function that does not end within
// cancelGrace then is an error. Outcomes that Redis does not take within settleGrace are none: the
// leases lapse and the runs are recorded as abandoned.
func (r *Runner) Drain(d time.Duration) error {
	settled, ended := wait.Done(&r.wg), wait.Done(&r.calls)
	if wait.Within(settled, d) {
		return nil
	}
	r.cancel(ErrDraining)
	if !wait.Within(ended, cancelGrace) {
		return fmt.Errorf("%d job functions did not end within %s after their contexts did; their leases will lapse and be recorded as abandoned",
			r.going.Load(), cancelGrace)
	}
	if !wait.Within(settled, settleGrace) {
		r.Log.Warn("the node stops with outcomes that Redis did not take; the leases lapse and the runs are recorded as abandoned",
			"runs", len(r.Live.Grants()))
	}
	return nil
}
