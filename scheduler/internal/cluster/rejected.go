package cluster

import (
	"slices"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

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
