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

// take takes up what the agenda told, and says whether to register at once.
func (r *registrar) take() (now bool) {
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
			o.why = work.Displaced // by a newer build or another generation, once will tell
		case work.Lost:
			r.n.announcer.repeat()
		}
		if r.outside[o.job] == "" && o.why != work.Sealed && o.why != work.Displaced { // that is said once for all, see once
			r.n.Log.Warn("job is not claimed by this node any more", "job", o.job.Name, "why", o.why)
		}
		r.outside[o.job] = o.why
		now = now || o.why == work.Lost || o.why == work.Sealed || o.why == work.Displaced
	}
	return now
}

// Rejected is told by the agenda of a job that it cannot claim. It does not wait: the agenda must
// not wait for a role that may be waiting for the agenda.
func (r *registrar) Rejected(j *work.Job, why string) {
	if why == work.Sealed {
		r.n.Moves.NoteClosed()
	}
	r.mu.Lock()
	r.rejected = append(r.rejected, rejection{j, why})
	r.mu.Unlock()
	wait.Signal(r.told)
}
