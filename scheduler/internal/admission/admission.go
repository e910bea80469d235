// Package admission gets what a run needs beside its own lease before it starts: a permit of its
// job's group (jobs.Limit), and the lock of its job's guard.
package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// refusedPause is the wait after a call that was refused.
	refusedPause = time.Second
	// logEvery is the shortest time between two log lines about refused calls of one run.
	logEvery = time.Minute
	// releaseTime bounds a release. A lock that is not released lapses.
	releaseTime = 3 * time.Second
	// maxHolder is the length of the longest locking.Options.Holder, in bytes.
	maxHolder = 128
)

// ErrLate is returned when a run could not start in time.
var ErrLate = errors.New("it could not start within start_within")

// Config holds what an admission needs.
type Config struct {
	Node   string                     // its name, for those who look at the locks
	Limits *locking.Locker            // has semaphores
	Guards map[string]*locking.Locker // by the names that jobs use; the caller closes them
	Log    *slog.Logger
}

// Admission gets permits and guards for runs.
type Admission struct{ Config }

// New makes an admission.
func New(c Config) *Admission { return &Admission{c} }

// Needed reports whether runs of a job need more than their leases.
func Needed(j *work.Job) bool { return j.Limit.Group != "" || j.Guard != "" }

// Permits are what a run holds beside its lease: permits of its groups, and its guard.
type Permits struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelCauseFunc
	leases []*locking.Lease
	token  locking.Token
}

// Context ends when a lease is lost, or the run's own context ends.
func (h *Permits) Context() context.Context { return h.ctx }

// Token is the guard's fencing token, 0 without a guard.
func (h *Permits) Token() locking.Token { return h.token }

// Left is how long all of it is held if nothing is renewed any more; not positive once a lease has
// ended.
func (h *Permits) Left() time.Duration {
	left := h.leases[0].Left()
	for _, l := range h.leases[1:] {
		left = min(left, l.Left())
	}
	return left
}

// Margin is how long after that nobody else is granted any of it.
func (h *Permits) Margin() time.Duration {
	margin := h.leases[0].Margin()
	for _, l := range h.leases[1:] {
		margin = min(margin, l.Margin())
	}
	return margin
}

// Release gives everything back, the last one first. It waits for the stores, a few seconds at most.
func (h *Permits) Release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	for i := len(h.leases) - 1; i >= 0; i-- {
		if err := h.leases[i].Release(ctx); err != nil && !errors.Is(err, locking.ErrLost) { // a lost one ended the run's context
			h.log.Warn("a lock of a run that has ended could not be released; it lapses by itself", "lock", h.leases[i].Name(), "error", err)
		}
	}
	h.cancel(nil)
}

// Enter waits until the run has everything that it needs. A run that must start by an instant that
// passes meanwhile gets ErrLate. When stop is closed, or ctx ends, the error is a context's. run
// gets a line for each wait, and waits is called with what the run waits for.
func (a *Admission) Enter(ctx context.Context, stop <-chan struct{}, g work.Grant, run *jobs.Run, left func() time.Duration, waits func(Wait)) (*Permits, error) {
	h := &Permits{log: a.Log}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	entered := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case <-stop:
			h.cancel(context.Canceled)
		case <-entered:
		}
	})
	err := a.enter(h, g, request{run: run, left: left, waits: waits})
	close(entered)
	stopping.Wait()
	if err = cmp.Or(err, context.Cause(h.ctx)); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func (a *Admission) enter(h *Permits, g work.Grant, q request) error {
	j := g.Job
	holder := a.Node + " " + j.Name
	q.Options = locking.Options{TTL: j.TTL, Holder: holder[:min(len(holder), maxHolder)]}
	if l := j.Limit; l.Group != "" {
		q.locker, q.name, q.Permits = a.Limits, "limit:"+l.Group, l.Max
		q.what = fmt.Sprintf("one of the %d permits of %s", l.Max, l.Group)
		if err := a.take(h, q); err != nil {
			return err
		}
	}
	if j.Guard == "" {
		return nil
	}
	q.locker, q.name, q.Permits, q.what = a.Guards[j.Guard], j.Name, 0, "the guard "+j.Guard
	if g.Lease.Shards > 1 {
		q.name += fmt.Sprintf("/%d", g.Lease.Shard)
	}
	if err := a.take(h, q); err != nil {
		return err
	}
	h.token = h.leases[len(h.leases)-1].Token()
	return nil
}

// request is one lock that a run needs.
type request struct {
	locking.Options
	locker *locking.Locker
	name   string
	what   string // in words
	run    *jobs.Run
	left   func() time.Duration // until the run must start
	waits  func(Wait)
}

// Wait is what a run waits for.
type Wait struct {
	What    string // in words
	Refusal error  // of the store, which refuses or does not answer; nil: another holder has the lock
}

// wait is the wait of a request that was not granted.
func (q *request) wait(err error) Wait {
	if errors.Is(err, locking.ErrHeld) {
		err = nil
	}
	return Wait{What: q.what, Refusal: err}
}

// take acquires a lock for h, however long that takes.
func (a *Admission) take(h *Permits, q request) error {
	lease, err := q.locker.Try(h.ctx, q.name, q.Options)
	if err != nil && h.ctx.Err() == nil {
		began := time.Now()
		a.Log.Info("a run waits before it starts", "job", q.run.Job(), "run", q.run.ID(), "for", q.what, "error", err)
		fmt.Fprintf(q.run.Output(), "waits for %s: %v\n", q.what, err)
		q.waits(q.wait(err))
		lease, err = a.await(h.ctx, q)
		fmt.Fprintf(q.run.Output(), "waited %s for %s\n", time.Since(began).Round(time.Millisecond), q.what)
	}
	if err != nil {
		return err
	}
	h.leases = append(h.leases, lease)
	h.ctx = lease.Context()
	return nil
}

// await asks until it has the lock, ctx ends, or the run is too late. One call waits for all of that
// time, because the next one would begin at the end of the queue.
func (a *Admission) await(ctx context.Context, q request) (*locking.Lease, error) {
	var logged time.Time
	for {
		if q.Wait = q.left(); q.Wait <= 0 {
			return nil, fmt.Errorf("%w: it waited for %s", ErrLate, q.what)
		}
		lease, err := q.locker.Acquire(ctx, q.name, q.Options)
		if err == nil || ctx.Err() != nil {
			return lease, err
		}
		q.waits(q.wait(err))
		if !errors.Is(err, locking.ErrHeld) && time.Since(logged) >= logEvery {
			logged = time.Now()
			a.Log.Warn("a run still waits", "job", q.run.Job(), "run", q.run.ID(), "for", q.what, "error", err)
		}
		// Refused: no memory at the store, or another number of permits, until all nodes have the new definition.
		wait.For(ctx, min(q.left(), refusedPause))
	}
}
