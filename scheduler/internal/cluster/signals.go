package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
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

// Changed notes that the node's jobs have changed. It does not wait.
func (n *Cluster) Changed() {
	wait.Signal(n.registrar.changed)
}

// changes updates the list of the node's jobs.
func (r *registrar) changes() {
	has := make(map[*work.Job]bool, r.jobs.Len())
	for _, j := range r.jobs.All() {
		if has[j] = true; !r.has[j] {
			r.unclaimable[j] = work.Unregistered
		}
	}
	for j := range r.has {
		if !has[j] {
			r.lanes.Displaced(j)
			if j.Def.Stored > 0 && r.unclaimable[j] != "" {
				r.lostBeforeRegistered = append(r.lostBeforeRegistered, j)
			}
		}
	}
	gone := func(j *work.Job, _ string) bool { return !has[j] }
	maps.DeleteFunc(r.unclaimable, gone)
	maps.DeleteFunc(r.rivals, gone)
	maps.DeleteFunc(r.stored, func(j *work.Job, _ bool) bool { return !has[j] })
	r.has = has
}

// takeRejected handles the jobs that the agenda rejected. It reports whether to register at once.
func (r *registrar) takeRejected() (now bool) {
	r.mu.Lock()
	rejected := r.rejected
	r.rejected = nil
	r.mu.Unlock()
	for _, o := range rejected {
		if !r.has[o.Job] {
			continue // it was removed
		}
		switch o.Why {
		case work.Superseded:
			o.Why = work.Displaced // a newer build's or another generation's: the registration finds out
		case work.NotStored:
			r.announcer.repeat()
		}
		if r.unclaimable[o.Job] == "" && o.Why != work.Sealed && o.Why != work.Displaced { // those are logged once for all jobs, see once
			r.log.Warn("job is not claimed by this node any more", "job", o.Job.Name, "why", o.Why)
		}
		r.unclaimable[o.Job] = o.Why
		now = now || o.Why == work.NotStored || o.Why == work.Sealed || o.Why == work.Displaced
	}
	return now
}

// Rejected notes jobs that the agenda cannot claim. It does not wait, because the registrar may be
// waiting for the agenda.
func (r *registrar) Rejected(all []work.Rejection) {
	if i := slices.IndexFunc(all, func(o work.Rejection) bool { return o.Why == work.Sealed }); i >= 0 {
		r.moves.NoteClosed(ledger.ClosedBy(all[i].Detail))
	}
	r.mu.Lock()
	r.rejected = append(r.rejected, all...)
	r.mu.Unlock()
	wait.Signal(r.rejectedSignal)
}
