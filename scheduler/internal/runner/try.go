package runner

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
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// errLeft is a try's error when the function called runtime.Goexit, as a test's FailNow does.
var errLeft = errors.New("the function ended its goroutine instead of returning")

// call calls the job's function, as often as the job's Retry says, and ends the run.
func (r *Runner) call(l *life) {
	l.ctx = l.lease.Context()
	if timeout := l.g.Job.Timeout; timeout > 0 {
		l.ctx, l.cancel = context.WithTimeoutCause(l.ctx, timeout, jobs.ErrTimeout)
	}
	l.calling.Store(true)
	r.tellStarted(l)
	r.Listener.Started(l.g.Lease, l.started)
	r.tries(l)
}

// late and long are from when on a start, or a run, is worth a line of its own in a log that shows no others.
const (
	late = time.Second
	long = time.Minute
)

// usual is the level of what happens all the time, and of what is unusual about it. It is none when the log does not show that: what is not
// written is not put together either.
func (r *Runner) usual(unusual bool) (level slog.Level, shown bool) {
	if unusual {
		level = slog.LevelInfo
	} else {
		level = slog.LevelDebug
	}
	return level, r.Log.Enabled(context.Background(), level)
}

// tellStarted logs that the function is called.
func (r *Runner) tellStarted(l *life) {
	g, log := l.g.Lease, r.Log
	lag, since := l.started.Sub(time.UnixMilli(g.Tick)), g.Tick
	if t := work.TriggerOf(g); t != jobs.TriggerSchedule && t != jobs.TriggerCatchUp {
		since = g.Granted // its tick may be long ago
	}
	level, shown := r.usual(l.started.Sub(time.UnixMilli(since)) > late)
	if !shown {
		return
	}
	tick := time.UnixMilli(g.Tick).UTC()
	if g.Shards > 1 {
		log = log.With("shard", g.Shard)
	}
	log.Log(l.ctx, level, "run started", "job", g.Job, "tick", tick, "token", g.Token,
		"lag", lag, "run", g.Run, "trigger", work.TriggerOf(g).String())
}

// tellLost says, once, that the lease was lost.
func (r *Runner) tellLost(l *life) {
	l.told.Do(func() {
		g := l.g.Lease
		r.Log.Warn("lease lost while the run was going; its context was cancelled", "job", g.Job, "tick", time.UnixMilli(g.Tick).UTC(),
			"run", g.Run, "token", g.Token, "cause", context.Cause(l.lease.Context()))
		r.Listener.LeaseLost(g, l.started)
	})
}

// tries calls the function until no try is left. A function that ends its goroutine does not take the
// run with it: another goroutine goes on from there.
func (r *Runner) tries(l *life) {
	defer func() {
		if l.inside {
			l.inside = false
			go r.tries(l)
		}
	}()
	for r.another(l) {
		if l.tries++; l.tries > 1 {
			l.run = r.runOf(l.g, l.tries)
		}
		l.inside, l.err = true, errLeft // until it returns
		l.err = r.invoke(l)
		l.inside = false
	}
	r.end(l)
}

// another says whether the function is to be called, and waits until then.
func (r *Runner) another(l *life) bool {
	retry := l.g.Job.Retry
	switch {
	case l.tries == 0:
		return true
	case l.err == nil, l.tries > retry.Max, jobs.IsPermanent(l.err), l.ctx.Err() != nil:
		return false
	}
	pause := retryWait(l.run.ID(), retry, l.tries)
	r.Log.Warn("try failed; there will be another", "job", l.run.Job(), "tick", l.run.Tick(), "run", l.run.ID(),
		"try", l.tries, "of", 1+retry.Max, "wait", pause, "error", l.err)
	if !wait.For(l.ctx, pause) || !l.lease.Valid() || l.ctx.Err() != nil {
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
	return d - wait.Spread(fmt.Sprint(run, " after try ", n), time.Unix(0, 0), d/2)
}

// invoke calls the function and turns a panic, also of the error that it returned, into an error.
func (r *Runner) invoke(l *life) (err error) {
	r.going.Add(1)
	defer r.going.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
			r.Log.Error("job function panicked", "job", l.run.Job(), "run", l.run.ID(), "panic", clip(fmt.Sprint(p), errorRoom), "stack", string(debug.Stack()))
		}
	}()
	return frozen(l.g.Job.Func(l.ctx, l.run))
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

func (r *Runner) runOf(g work.Grant, try int) *jobs.Run {
	return jobs.NewRun(jobs.RunInfo{
		ID: g.Lease.Run, Job: g.Job.Name, Tick: time.UnixMilli(g.Lease.Tick).UTC(), Shard: g.Lease.Shard, Shards: g.Lease.Shards,
		Attempt: g.Lease.Attempt, Try: try, Token: g.Lease.Token, Node: r.Node, Trigger: work.TriggerOf(g.Lease), Payload: g.Lease.Payload,
		Param: g.Lease.Param, Logger: r.Log,
	})
}

const (
	// panicMax is what is kept of a panic's value, in bytes, and framesMax how many frames of its stack.
	panicMax  = 512
	framesMax = 10
	// invokeName is where the frames of the job's function end.
	invokeName = "runner.(*Runner).invoke"
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
