package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// errLeft is a try's error when the function called runtime.Goexit, as a test's FailNow does.
var errLeft = errors.New("the function ended its goroutine instead of returning")

// call calls the job's function, as often as the job's Retry says, and ends the run.
func (r *runner) call(l *life) {
	lease := l.lease
	ctx := lease.Context()
	fn, endTimeout := ctx, func() {}
	if l.g.job.Timeout > 0 {
		fn, endTimeout = context.WithTimeoutCause(ctx, l.g.job.Timeout, jobs.ErrTimeout)
	}
	l.ctx, l.started = fn, r.n.clock.now()
	ended := make(chan struct{})
	stop := context.AfterFunc(fn, func() { r.outlived(l, ended) })
	l.undo = func() {
		close(ended)
		stop()
		if lease.Lost() {
			r.tellLost(l) // before the run is settled, in any case
		}
		endTimeout()
	}
	if r.n.log.Enabled(ctx, slog.LevelInfo) { // what is not written is not put together either
		r.tellStarted(l)
	}
	r.n.events.started(l.g.lease, l.started)
	r.tries(l)
}

// tellStarted logs that the function is called.
func (r *runner) tellStarted(l *life) {
	g, log := l.g.lease, r.n.log
	tick := time.UnixMilli(g.Tick).UTC()
	if g.Shards > 1 {
		log = log.With("shard", g.Shard)
	}
	log.Info("run started", "job", g.Job, "tick", tick, "token", g.Token,
		"lag", l.started.Sub(tick), "run", g.Run, "trigger", triggerOf(g).String())
}

// outlived is called when the function's context has ended. It tells of a lost lease, now or later, and of a function that goes on long
// after that: nothing else can end it, and it keeps its slot.
func (r *runner) outlived(l *life, ended <-chan struct{}) {
	fn, lease := l.ctx, l.lease.Context()
	context.AfterFunc(lease, func() {
		select {
		case <-ended: // the lease is kept until the outcome is recorded, and what becomes of it is nothing to a function that has returned
			return
		default:
		}
		if errors.Is(context.Cause(lease), locking.ErrLeaseLost) {
			r.tellLost(l)
		}
	})
	if !within(ended, sayAgain) {
		g := l.g
		r.n.log.Warn("a job's function goes on though its context has ended; it keeps its slot until it returns", "job", g.lease.Job,
			"tick", time.UnixMilli(g.lease.Tick).UTC(), "run", g.lease.Run, "cause", context.Cause(fn), "for", sayAgain)
	}
}

// tellLost says, once, that the lease was lost.
func (r *runner) tellLost(l *life) {
	l.told.Do(func() {
		g := l.g.lease
		r.n.log.Warn("lease lost while the run was going; its context was cancelled", "job", g.Job, "tick", time.UnixMilli(g.Tick).UTC(),
			"run", g.Run, "token", g.Token, "cause", context.Cause(l.lease.Context()))
		r.n.events.leaseLost(g, l.started)
	})
}

// tries calls the function until no try is left. A function that ends its goroutine does not take the
// run with it: another goroutine goes on from there.
func (r *runner) tries(l *life) {
	defer func() {
		if l.calling {
			l.calling = false
			r.wg.Go(func() { r.tries(l) })
		}
	}()
	for r.another(l) {
		l.tries++
		l.run = runOf(l.g, r.n.cfg.Name, l.tries)
		l.calling, l.err = true, errLeft // until it returns
		l.err = r.invoke(l)
		l.calling = false
	}
	r.end(l)
}

// another says whether the function is to be called, and waits until then.
func (r *runner) another(l *life) bool {
	retry := l.g.job.Retry
	switch {
	case l.tries == 0:
		return true
	case l.err == nil, l.tries > retry.Max, jobs.IsPermanent(l.err), l.ctx.Err() != nil:
		return false
	}
	wait := retryWait(l.run.ID(), retry, l.tries)
	r.n.log.Warn("try failed; there will be another", "job", l.run.Job(), "tick", l.run.Tick(), "run", l.run.ID(),
		"try", l.tries, "of", 1+retry.Max, "wait", wait, "error", l.err)
	if !pause(l.ctx, wait) || !l.lease.Valid() || l.ctx.Err() != nil {
		return false
	}
	l.before = append(l.before, fmt.Sprintf("try %d: %s", l.tries, short(l.err)))
	return true
}

// retryWait is the wait after a run's n-th try: it doubles from try to try up to the job's limit, and
// up to half of it is taken off. It follows from the run's id.
func retryWait(run string, retry jobs.Retry, n int) time.Duration {
	d := retry.Backoff
	for i := 1; i < n && d < retry.MaxBackoff; i++ {
		d *= 2
	}
	d = min(d, retry.MaxBackoff)
	if d/2 == 0 {
		return d
	}
	return d - spread(fmt.Sprint(run, " after try ", n), time.Unix(0, 0), d/2)
}

// invoke calls the function and turns a panic, also of the error that it returned, into an error.
func (r *runner) invoke(l *life) (err error) {
	r.going.Add(1)
	defer r.going.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
			r.n.log.Error("job function panicked", "job", l.run.Job(), "run", l.run.ID(), "panic", clip(fmt.Sprint(p), errorRoom), "stack", string(debug.Stack()))
		}
	}()
	return frozen(l.g.job.Func(l.ctx, l.run))
}

// frozen is what the function returned, as a text of errorRoom bytes at most: the error's own methods may panic, which is caught here and
// nowhere else, and a text may hold all that a server has answered.
func frozen(err error) error {
	switch {
	case err == nil:
		return nil
	case jobs.IsPermanent(err):
		return jobs.Permanent(errors.New(clip(err.Error(), errorRoom)))
	}
	return errors.New(clip(err.Error(), errorRoom))
}

func runOf(g grant, node string, try int) *jobs.Run {
	return jobs.NewRun(jobs.RunInfo{
		ID: g.lease.Run, Job: g.job.Name, Tick: time.UnixMilli(g.lease.Tick).UTC(), Shard: g.lease.Shard, Shards: g.lease.Shards,
		Attempt: g.lease.Attempt, Try: try, Token: g.lease.Token, Node: node, Trigger: triggerOf(g.lease), Payload: g.lease.Payload,
		Param: g.lease.Param,
	})
}

const (
	// panicMax is what is kept of a panic's value, in bytes, and framesMax how many frames of its stack.
	panicMax  = 512
	framesMax = 10
	// invokeName is where the frames of the job's function end.
	invokeName = "scheduler.(*runner).invoke"
)

// panicked is a panic as an error: its value, then the frames of the stack it came from, innermost first.
// It is called by the function that recovered.
func panicked(value any) error {
	var text strings.Builder
	text.WriteString("panic: " + clip(fmt.Sprint(value), panicMax))
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	inside := false // below the panic, in what the job called
	for n, more := 0, true; more && n < framesMax; {
		var f runtime.Frame
		f, more = frames.Next()
		name := path.Base(f.Function)
		switch {
		case name == invokeName:
			more = false
		case name == "runtime.gopanic":
			inside = true
		case inside && !strings.HasPrefix(name, "runtime."):
			fmt.Fprintf(&text, "\n\t%s (%s:%d)", name, path.Base(f.File), f.Line)
			n++
		}
	}
	return errors.New(text.String())
}
