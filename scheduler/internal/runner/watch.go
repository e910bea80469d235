package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// watchEvery is how often Run looks for functions that go on after their contexts have ended, and
// for a step of Redis' clock.
const watchEvery = time.Second

// Run starts the runs that were granted ahead when they are due, until ctx ends. It also logs
// functions that go on after their contexts have ended: at once that the lease was lost, and after
// overrunAfter that the function keeps its slot until it returns. Without runs it sleeps.
func (r *Runner) Run(ctx context.Context) {
	timer, looked := time.NewTimer(time.Hour), time.Now()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.changed:
		}
		//guard:unbelieved-hands-back P6 a node that does not know when a tick is due keeps no run that was granted ahead of it
		if r.Usable() != nil {
			r.starts.end()
		}
		next := cmp.Or(r.starts.wake(), watchEvery)
		if now := time.Now(); now.Sub(looked) >= watchEvery {
			looked = now
			r.Active.each(func(l *activeRun) {
				r.look(l)
				r.lookStalled(l)
			})
			r.lookForTails()
		}
		if next = min(next, watchEvery); !r.Active.some() {
			next = time.Hour
		}
		timer.Reset(next)
	}
}

// look looks at one run.
func (r *Runner) look(l *activeRun) {
	if !l.calling.Load() || l.ctx.Err() == nil {
		return
	}
	if errors.Is(context.Cause(l.lease.Context()), locking.ErrLeaseLost) {
		r.logLost(l)
	}
	switch now, over := time.Now(), l.over.Load(); {
	case over == nil:
		l.over.Store(&now)
	case !l.logged && now.Sub(*over) >= overrunAfter:
		l.logged = true
		g := l.g.Lease
		r.Log.Warn("a job's function goes on though its context has ended; it keeps its slot until it returns", "job", g.Job,
			"tick", time.UnixMilli(g.Tick).UTC(), "run", g.Run, "cause", context.Cause(l.ctx), "for", now.Sub(*over).Round(time.Millisecond))
	}
}

// logOverrun tells, in the log and in the run's output, of a function that has returned long after
// its context had ended.
func (r *Runner) logOverrun(l *activeRun, how jobs.Outcome) {
	over := l.over.Load()
	if over == nil {
		return
	}
	took := time.Since(*over)
	if took < overrunAfter {
		return
	}
	g, cause := l.g.Lease, context.Cause(l.ctx)
	r.Log.Warn("a job's function has returned long after its context had ended", "job", g.Job, "tick", time.UnixMilli(g.Tick).UTC(),
		"run", g.Run, "cause", cause, "after", took.Round(time.Millisecond), "outcome", how.String())
	fmt.Fprintf(l.run.Output(), "escapement: the function returned %s after its context had ended (%v); what it returned counts: %s\n",
		took.Round(100*time.Millisecond), cause, how)
}
