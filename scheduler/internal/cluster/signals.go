package cluster

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// wait waits for a signal or the timer, and returns the jobs to try; some is false for none. A
// select takes any of the signals that are there, so all are handled, in a fixed order.
func (r *registrar) wait(ctx context.Context, timer *time.Timer) (what scope, some bool) {
	due := false
	select { // a signal is put back, to be handled in its turn
	case <-ctx.Done():
		return tryNone, false
	case <-r.redisLost:
		wait.Signal(r.redisLost)
	case <-r.changed:
		wait.Signal(r.changed)
	case <-r.rejectedSignal:
		wait.Signal(r.rejectedSignal)
	case <-r.promoted:
		wait.Signal(r.promoted)
	case <-r.moves.maybeOpen:
		wait.Signal(r.moves.maybeOpen)
	case <-r.viewChanged:
		wait.Signal(r.viewChanged)
	case <-timer.C:
		due = true
	}
	try := func(scope scope) { what, some = max(what, scope), true }
	if wait.Drop(r.redisLost) {
		r.registerAll()
		try(tryAll)
	}
	if wait.Drop(r.changed) {
		r.changes()
		try(tryNonStandby)
	}
	if wait.Drop(r.rejectedSignal) && r.takeRejected() {
		try(tryNonStandby)
	}
	if wait.Drop(r.promoted) {
		r.waiting.checks = true
		try(tryAll)
	}
	if wait.Drop(r.moves.maybeOpen) {
		try(r.retrySealed())
	}
	if wait.Drop(r.viewChanged) && r.rivalGone() {
		if soon := r.waiting.soon(); soon > 0 {
			timer.Reset(min(soon, r.pace()))
		} else {
			try(tryNonStandby)
		}
	}
	if due || wait.Drop(timer.C) {
		try(r.waiting.due())
	}
	return what, some
}

// registerAll has every job registered again, because Redis may have lost all of them.
func (r *registrar) registerAll() {
	r.announcer.repeat()
	clear(r.stored)
	if time.Since(r.lossLogged) >= r.failoverHold { // the lanes, the heartbeat and the new incarnation signal one loss each
		r.lossLogged = time.Now()
		r.log.Info("every job is registered again, because Redis may have lost it")
	}
	for _, j := range r.jobs.All() {
		r.unclaimable[j] = work.NotStored
	}
}
