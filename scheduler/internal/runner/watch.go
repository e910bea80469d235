package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/locking"
)

// watchEvery is how often runs are looked at: functions that go on after their contexts have ended, and whether Redis' clock was
// set since the next start was waited for.
const watchEvery = time.Second

// Run lets runs begin that were granted ahead, when they are due, until ctx ends. It also tells of functions that go on though their contexts
// have ended: that their lease was lost, and, after ten seconds, that nothing else can end them, and that they keep their slots.
// Where no run is, it sleeps.
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
		next := cmp.Or(r.starts.wake(), watchEvery)
		if now := time.Now(); now.Sub(looked) >= watchEvery {
			looked = now
			r.Live.each(r.look)
		}
		if next = min(next, watchEvery); !r.Live.some() {
			next = time.Hour
		}
		timer.Reset(next)
	}
}

// look looks at one run.
func (r *Runner) look(l *life) {
	if !l.calling.Load() || l.ctx.Err() == nil {
		return
	}
	if errors.Is(context.Cause(l.lease.Context()), locking.ErrLeaseLost) {
		r.tellLost(l)
	}
	switch now := time.Now(); {
	case l.over.IsZero():
		l.over = now
	case !l.said && now.Sub(l.over) >= sayAgain:
		l.said = true
		g := l.g.Lease
		r.Log.Warn("a job's function goes on though its context has ended; it keeps its slot until it returns", "job", g.Job,
			"tick", time.UnixMilli(g.Tick).UTC(), "run", g.Run, "cause", context.Cause(l.ctx), "for", sayAgain)
	}
}
