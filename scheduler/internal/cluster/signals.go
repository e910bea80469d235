package cluster

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// wait waits for a signal or the timer, and returns what is to be tried; some is false when nothing
// is. A select takes any of the signals that are there, so all are handled, in a fixed order.
func (r *registrar) wait(ctx context.Context, timer *time.Timer) (what scope, some bool) {
	due := false
	select { // a signal is put back, to be handled in its turn
	case <-ctx.Done():
		return tryNone, false
	case <-r.n.Lost:
		wait.Signal(r.n.Lost)
	case <-r.changed:
		wait.Signal(r.changed)
	case <-r.rejectedSignal:
		wait.Signal(r.rejectedSignal)
	case <-r.epoch:
		wait.Signal(r.epoch)
	case <-r.n.Moves.maybeOpen:
		wait.Signal(r.n.Moves.maybeOpen)
	case <-r.viewChanged:
		wait.Signal(r.viewChanged)
	case <-timer.C:
		due = true
	}
	try := func(scope scope) { what, some = max(what, scope), true }
	if wait.Drop(r.n.Lost) {
		r.lost()
		try(tryAll)
	}
	if wait.Drop(r.changed) {
		r.changes()
		try(tryNonStandby)
	}
	if wait.Drop(r.rejectedSignal) && r.takeRejected() {
		try(tryNonStandby)
	}
	if wait.Drop(r.epoch) {
		r.waiting.checks = true
		try(tryAll)
	}
	if wait.Drop(r.n.Moves.maybeOpen) {
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

// lost takes note that Redis may have lost everything.
func (r *registrar) lost() {
	r.n.announcer.repeat()
	clear(r.stored)
	if time.Since(r.lossLogged) >= r.n.FailoverHold { // the lanes, the heartbeat and the new incarnation signal one loss each
		r.lossLogged = time.Now()
		r.n.Log.Info("every job is registered again, because Redis may have lost it")
	}
	for _, j := range r.n.Jobs.All() {
		r.unclaimable[j] = work.Lost
	}
}
