package cluster

import (
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// rejection is a job that the agenda cannot claim, and why.
type rejection struct {
	job *work.Job
	why string
}

// takeRejected handles the jobs that the agenda rejected. It reports whether to register at once.
func (r *registrar) takeRejected() (now bool) {
	r.mu.Lock()
	rejected := r.rejected
	r.rejected = nil
	r.mu.Unlock()
	for _, o := range rejected {
		if !r.has[o.job] {
			continue // it was removed
		}
		switch o.why {
		case work.Superseded:
			o.why = work.Displaced // a newer build's or another generation's: the registration finds out
		case work.Lost:
			r.n.announcer.repeat()
		}
		if r.unclaimable[o.job] == "" && o.why != work.Sealed && o.why != work.Displaced { // those are logged once for all jobs, see once
			r.n.Log.Warn("job is not claimed by this node any more", "job", o.job.Name, "why", o.why)
		}
		r.unclaimable[o.job] = o.why
		now = now || o.why == work.Lost || o.why == work.Sealed || o.why == work.Displaced
	}
	return now
}

// Rejected notes a job that the agenda cannot claim. It does not wait, because the registrar may be
// waiting for the agenda.
func (r *registrar) Rejected(j *work.Job, why string) {
	if why == work.Sealed {
		r.n.Moves.NoteClosed()
	}
	r.mu.Lock()
	r.rejected = append(r.rejected, rejection{j, why})
	r.mu.Unlock()
	wait.Signal(r.rejectedSignal)
}
