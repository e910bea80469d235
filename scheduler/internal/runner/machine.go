package runner

import (
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/jobs"
)

const (
	// faultsMax is how often a run is handed back because it could not begin on this machine. After
	// that it has failed: there may be no other node, and no event is sent for a run that waits for
	// ever.
	faultsMax = 3
	// faultsFor is the shortest time for which these faults are remembered.
	faultsFor = 10 * time.Minute
)

// attempt is one attempt of a tick, whatever the ids of its runs are.
type attempt struct {
	job            string
	tick           int64
	shard, attempt int
}

// machineFaults counts how often attempts could not begin on this machine: since turned, and in the
// period before.
type machineFaults struct {
	mu             sync.Mutex
	counts, before map[attempt]int
	turned         time.Time
}

// again counts a fault, and reports whether the attempt may be handed back once more.
func (f *machineFaults) again(a attempt, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil || now.Sub(f.turned) > faultsFor {
		f.before, f.counts, f.turned = f.counts, make(map[attempt]int), now
	}
	f.counts[a] = max(f.counts[a], f.before[a]) + 1
	return f.counts[a] <= faultsMax
}

// machineFault handles the end of a try that could not begin for a reason of this machine: the node
// takes no runs for a while, and the run is handed back, for another node to take. It reports
// whether the run is over.
func (r *Runner) machineFault(l *activeRun) bool {
	if !jobs.IsNodeFault(l.err) {
		if r.Machine.Began(l.called) {
			r.Log.Info("runs begin on this machine again", "job", l.run.Job(), "run", l.run.ID())
		}
		return false
	}
	now := time.Now()
	if pause := r.Machine.Suspend(l.err, now); pause > 0 {
		r.Log.Error("a run could not begin on this machine; the node takes no runs for a while", "job", l.run.Job(), "run", l.run.ID(), "error", l.err, "for", pause)
	}
	g := l.g.Lease
	if l.tries > 1 || l.ctx.Err() != nil || !r.faults.again(attempt{g.Job, g.Tick, g.Shard, g.Attempt}, now) {
		return false // an earlier try may have done something
	}
	l.calling.Store(false)
	if l.cancel != nil {
		l.cancel()
	}
	r.handBack(l, fmt.Sprintf("it could not begin on this machine: %v", l.err))
	return true
}
