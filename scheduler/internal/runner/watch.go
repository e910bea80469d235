package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

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
				r.lookLost(l)
				r.lookOverrun(l)
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

// lookLost logs that a run's lease was lost while its function is running.
func (r *Runner) lookLost(l *activeRun) {
	if ctx := l.lease.Context(); l.calling.Load() && ctx.Err() != nil && errors.Is(context.Cause(ctx), locking.ErrLeaseLost) {
		r.logLost(l)
	}
}
