package runner

import (
	"cmp"
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

// errLeft is the error of a try whose function called runtime.Goexit, as a test's FailNow does.
var errLeft = errors.New("the function ended its goroutine instead of returning")

// call calls the job's function, as often as the job's Retry allows, and ends the run.
func (r *Runner) call(l *activeRun) {
	l.ctx = l.lease.Context()
	if l.held != nil {
		l.ctx = l.held.Context()
	}
	if timeout := l.g.Job.Timeout; timeout > 0 {
		l.ctx, l.cancel = context.WithTimeoutCause(l.ctx, timeout, jobs.ErrTimeout)
	}
	l.store.ctx = l.ctx
	l.calling.Store(true)
	r.logStarted(l)
	r.Listener.Started(l.g.Lease, l.started)
	r.tries(l)
}

// A start later than late, and a run longer than long, are logged at level info; other runs at
// debug.
const (
	late = time.Second
	long = time.Minute
)

// usual is the level for an event, and whether the log shows that level. An event that is not shown
// is not formatted either.
func (r *Runner) usual(unusual bool) (level slog.Level, shown bool) {
	if unusual {
		level = slog.LevelInfo
	} else {
		level = slog.LevelDebug
	}
	return level, r.Log.Enabled(context.Background(), level)
}

// logStarted logs that the function is called.
func (r *Runner) logStarted(l *activeRun) {
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
		"lag", lag, "run", g.ID, "trigger", work.TriggerOf(g).String())
}

// logLost logs, once, that the lease was lost.
func (r *Runner) logLost(l *activeRun) {
	l.logLostOnce.Do(func() {
		g := l.g.Lease
		r.leasesLost.Add(1)
		r.Log.Warn("lease lost while the run was going; its context was cancelled", "job", g.Job, "tick", time.UnixMilli(g.Tick).UTC(),
			"run", g.ID, "token", g.Token, "cause", context.Cause(l.ctx))
		r.Listener.LeaseLost(g, l.started)
	})
}

// tries calls the function until no try is left. If the function ends its goroutine, another
// goroutine continues the run.
func (r *Runner) tries(l *activeRun) {
	defer func() {
		if l.inFunction {
			l.inFunction = false
			go r.tries(l)
		}
	}()
	for r.another(l) {
		if l.tries++; l.tries > 1 {
			l.run = r.runOf(l, l.tries)
			l.writing.Store(l.run)
		}
		l.inFunction, l.err, l.called = true, errLeft, time.Now() // until it returns
		l.store.called()
		l.err = r.invoke(l)
		l.store.returned()
		l.inFunction = false
		if r.machineFault(l) {
			return
		}
	}
	r.end(l)
}

// another waits for the next try and reports whether the function is to be called again.
func (r *Runner) another(l *activeRun) bool {
	retry := l.g.Job.Retry
	switch {
	case l.tries == 0:
		return true
	case retry.On == jobs.RetryOtherNode, l.err == nil, l.tries > retry.Max, jobs.IsPermanent(l.err), l.ctx.Err() != nil:
		return false
	}
	pause := retryWait(l.run.ID(), retry, l.tries)
	r.Log.Warn("try failed; there will be another", "job", l.run.Job(), "tick", l.run.Tick(), "run", l.run.ID(),
		"try", l.tries, "of", 1+retry.Max, "wait", pause, "error", l.err)
	if !wait.For(l.ctx, pause) || !l.lease.Valid() || l.ctx.Err() != nil {
		return false
	}
	l.earlier = append(l.earlier, fmt.Sprintf("try %d: %s", l.tries, short(l.err)))
	return true
}

// retryWait is the wait after a run's n-th try. It doubles with each try up to the job's limit,
// less up to a half that depends on the run's id.
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

// invoke calls the function and turns a panic into an error, also one of the returned error's own
// methods.
func (r *Runner) invoke(l *activeRun) (err error) {
	r.running.Add(1)
	defer r.running.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
			r.Log.Error("job function panicked", "job", l.run.Job(), "run", l.run.ID(), "panic", clip(fmt.Sprint(p), errorRoom), "stack", string(debug.Stack()))
		}
	}()
	ctx := l.ctx
	if d := l.g.Job.Retry.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, jobs.ErrTryTimeout)
		defer cancel()
	}
	call := &invocation{try: l.tries, ctx: ctx}
	l.inCall.Store(call)
	defer r.returned(l, call)
	return plainError(l.g.Job.Func(ctx, l.run))
}

// plainError is the function's error as text of at most errorRoom bytes. The error's own methods
// may panic, which only invoke catches, and its text may be as long as a server's answer.
func plainError(err error) error {
	switch {
	case err == nil:
		return nil
	case jobs.IsPermanent(err):
		return jobs.Permanent(errors.New(clip(err.Error(), errorRoom)))
	case jobs.IsNodeFault(err):
		return jobs.NodeFault(errors.New(clip(err.Error(), errorRoom)))
	}
	return errors.New(clip(err.Error(), errorRoom))
}

func (r *Runner) runOf(l *activeRun, try int) *jobs.Run {
	g, token := l.g, l.g.Lease.Token
	if l.held != nil {
		token = cmp.Or(l.held.Token(), token)
	}
	payload := g.Lease.Payload
	if len(payload) == 0 {
		payload = g.Job.Payload
	}
	return jobs.NewRun(jobs.RunInfo{
		ID: g.Lease.ID, Job: g.Job.Name, Tick: time.UnixMilli(g.Lease.Tick).UTC(), Shard: g.Lease.Shard, Shards: g.Lease.Shards,
		Attempt: g.Lease.Attempt, Try: try, Token: token, Node: r.Node, Trigger: work.TriggerOf(g.Lease), Payload: payload,
		Param: g.Lease.Param, Logger: r.Log, Store: l.store, Lease: &l.time,
	})
}

const (
	// panicMax bounds the text of a panic's value, in bytes; framesMax the frames of its stack.
	panicMax  = 512
	framesMax = 10
	// invokeName is the frame at which the job's function begins.
	invokeName = "runner.(*Runner).invoke"
)

// panicked is a panic as an error: its value, then the frames of its stack, innermost first. The
// function that recovered calls it.
func panicked(value any) error {
	var text strings.Builder
	text.WriteString("panic: " + clip(fmt.Sprint(value), panicMax))
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	inside := false // the frames belong to the job
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
