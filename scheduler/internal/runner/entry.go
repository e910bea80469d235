package runner

import (
	"errors"
	"math"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/admission"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// enter gets a run's permits beside its lease, and reports whether the run has them. A run that
// could not start in time is handed back: the ledger records it as missed when it is claimed again.
func (r *Runner) enter(l *activeRun, back bool) bool {
	if back || !admission.Needed(l.g.Job) {
		return true
	}
	by := startBy(l.g)
	left := func() time.Duration {
		if by == 0 {
			return math.MaxInt64
		}
		return time.UnixMilli(by).Sub(r.Past())
	}
	held, err := r.Entry.Enter(l.lease.Context(), r.refused, l.g, l.run, left, l.store.waits)
	if err != nil {
		if errors.Is(err, admission.ErrLate) {
			l.late = err.Error()
		}
		return false
	}
	l.store.entered()
	l.held = held
	l.time.held.Store(held)
	if held.Token() != 0 {
		waits := l.run.Written()
		l.run = r.runOf(l, 1) // with the guard's token
		_, _ = l.run.Output().Write(waits)
		l.writing.Store(l.run)
	}
	return true
}

// startBy is the instant (ms) by which a granted run must start, 0 for no limit. A run that follows
// another job has none: the ledger would not record it as missed, because it was granted before.
func startBy(g work.Grant) int64 {
	trigger := work.TriggerOf(g.Lease)
	switch {
	case trigger == jobs.TriggerAfter:
		return 0
	case g.WasPending || g.Lease.TickID != "" || g.Job.StartWithin == 0 || trigger != jobs.TriggerSchedule && trigger != jobs.TriggerCatchUp:
		return g.Job.StartBy(&g.Lease)
	}
	return g.Lease.Tick + g.Job.StartWithin.Milliseconds()
}
