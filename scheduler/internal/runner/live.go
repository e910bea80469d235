package runner

import (
	"sync"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Live are the runs that are here, to their end: as many as there are slots at most, and those that are handed back for want of one. The zero value has none.
type Live struct{ runs sync.Map } // *life by id

// Grants are the runs that are here.
func (l *Live) Grants() []work.Grant {
	var all []work.Grant
	l.each(func(x *life) { all = append(all, x.g) })
	return all
}

// some says whether there is any.
func (l *Live) some() bool {
	found := false
	l.runs.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}

// each calls f for each.
func (l *Live) each(f func(*life)) {
	l.runs.Range(func(_, x any) bool {
		f(x.(*life))
		return true
	})
}

// cancelRun ends the context of a run with a cause, if the run is here, or those of all shards of a tick that are
// here. The first cause stays.
func (l *Live) cancelRun(id string, cause error) {
	if x, ok := l.runs.Load(id); ok {
		x.(*life).lease.Cancel(cause)
		return
	}
	l.each(func(shard *life) {
		if shard.g.Lease.Of == id {
			shard.lease.Cancel(cause)
		}
	})
}

// Cancelled ends a run that somebody wants ended, if it is here.
func (l *Live) Cancelled(c ledger.Cancel) {
	if c.Author == "" {
		l.cancelRun(c.Run, jobs.ErrReplaced)
		return
	}
	l.cancelRun(c.Run, &cancellation{c.Author, c.Reason})
}
