package runner

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
)

// overrunAfter is when a function is logged that goes on after its context has ended.
const overrunAfter = 2 * time.Second

// invocation is one call of a job's function.
type invocation struct {
	try    int
	ctx    context.Context           // the function's
	over   atomic.Pointer[time.Time] // when Run first saw that ctx had ended
	logged bool                      // it was logged that the function goes on. Run's alone
}

// overrun is a try that returned long after its context had ended; its zero value is none.
type overrun struct {
	try   int
	took  time.Duration
	cause error
}

// lookOverrun logs, once, a function that goes on though its context has ended.
func (r *Runner) lookOverrun(l *activeRun) {
	call := l.inCall.Load()
	if call == nil || call.ctx.Err() == nil {
		return
	}
	switch now, over := time.Now(), call.over.Load(); {
	case over == nil:
		call.over.Store(&now)
	case !call.logged && now.Sub(*over) >= overrunAfter:
		call.logged = true
		g := l.g.Lease
		r.Log.Warn("a job's function goes on though its context has ended; it keeps its slot until it returns", "job", g.Job,
			"tick", time.UnixMilli(g.Tick).UTC(), "run", g.ID, "try", call.try, "cause", context.Cause(call.ctx), "for", now.Sub(*over).Round(time.Millisecond))
	}
}

// returned notes that a call of the function has ended, in whatever way. It logs a call that ended
// long after its context.
func (r *Runner) returned(l *activeRun, call *invocation) {
	l.inCall.Store(nil)
	over := call.over.Load()
	if over == nil {
		return
	}
	took := time.Since(*over)
	if took < overrunAfter {
		return
	}
	g := l.g.Lease
	l.overran = overrun{call.try, took, context.Cause(call.ctx)}
	r.Log.Warn("a job's function has returned long after its context had ended", "job", g.Job, "tick", time.UnixMilli(g.Tick).UTC(),
		"run", g.ID, "try", call.try, "cause", l.overran.cause, "after", took.Round(time.Millisecond))
}

// write adds a line about the overrun to the run's stored output, which is the last try's.
func (o overrun) write(l *activeRun, how jobs.Outcome) {
	if o.try == 0 {
		return
	}
	counts := ""
	if o.try == l.tries {
		counts = "; what it returned counts: " + how.String()
	}
	fmt.Fprintf(l.run.Output(), "escapement: try %d of the function returned %s after its context had ended (%v)%s\n",
		o.try, o.took.Round(100*time.Millisecond), o.cause, counts)
}
