package runner

import (
	"sync"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ActiveRuns are the node's runs until they are settled or handed back. There are at most as many
// as slots, and the runs that are handed back for lack of a slot. The zero value has none.
type ActiveRuns struct{ runs sync.Map } // *activeRun by id

// Grants returns the grants of the runs.
func (l *ActiveRuns) Grants() []work.Grant {
	var all []work.Grant
	l.each(func(x *activeRun) { all = append(all, x.g) })
	return all
}

// some reports whether there is any run.
func (l *ActiveRuns) some() bool {
	found := false
	l.runs.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}

// each calls f for each run.
func (l *ActiveRuns) each(f func(*activeRun)) {
	l.runs.Range(func(_, x any) bool {
		f(x.(*activeRun))
		return true
	})
}

// cancelRun ends the context of a run with a cause, or the contexts of all shards of a tick. Only
// the first cause counts. A run that is not here is ignored.
func (l *ActiveRuns) cancelRun(id string, cause error) {
	if x, ok := l.runs.Load(id); ok {
		x.(*activeRun).lease.Cancel(cause)
		return
	}
	l.each(func(shard *activeRun) {
		if shard.g.Lease.TickID == id {
			shard.lease.Cancel(cause)
		}
	})
}

// Progress is how far a run is, or what it waits for, as the ledger keeps it; "" for neither, or when it is not here.
func (l *ActiveRuns) Progress(run string) string {
	if x, ok := l.runs.Load(run); ok {
		return x.(*activeRun).store.text()
	}
	return ""
}

// Cancelled ends a run that is to be cancelled or replaced, if it is here.
func (l *ActiveRuns) Cancelled(c ledger.Cancel) {
	if c.Author == "" {
		l.cancelRun(c.Run, jobs.ErrReplaced)
		return
	}
	l.cancelRun(c.Run, &cancellation{c.Author, c.Reason})
}
