package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
)

const (
	// cancelGrace is how long a function may take to return after a drain has cancelled its
	// context.
	cancelGrace = 10 * time.Second
	// settleGrace is how long Redis may take after that to record the outcomes.
	settleGrace = 2 * time.Second
	// drainEvery is how often a node that drains names the runs that it waits for.
	drainEvery = 10 * time.Second
	// namesMost bounds the runs that it names.
	namesMost = 10
)

// Refuse makes the runner hand back every new grant, and all runs that have not begun.
func (r *Runner) Refuse() {
	if !r.draining.Swap(true) {
		close(r.refused)
	}
	r.starts.end()
}

// Drain waits for the runs. After d it ends their contexts. A function that does not return within
// cancelGrace after that is an error. Outcomes that Redis does not record within settleGrace are
// not: the leases lapse and the runs are recorded as abandoned.
func (r *Runner) Drain(d time.Duration) error {
	settled, ended := wait.Done(&r.wg), wait.Done(&r.calls)
	if r.drained(settled, d) {
		return nil
	}
	r.cancel(ErrDraining)
	if !wait.Within(ended, cancelGrace) {
		return fmt.Errorf("%d job functions did not end within %s after their contexts did; their leases will lapse and be recorded as abandoned: %s",
			r.running.Load(), cancelGrace, r.names())
	}
	if !wait.Within(settled, settleGrace) {
		r.Log.Warn("the node stops with outcomes that Redis did not take; the leases lapse and the runs are recorded as abandoned",
			"runs", len(r.Active.Grants()))
	}
	return nil
}

// drained waits for the runs, d at most, and names them meanwhile. It reports whether they have
// ended.
func (r *Runner) drained(settled <-chan struct{}, d time.Duration) bool {
	for deadline := time.Now().Add(d); ; {
		left := time.Until(deadline)
		if wait.Within(settled, min(left, drainEvery)) {
			return true
		}
		if left <= drainEvery {
			r.Log.Warn("the drain time is over: the node ends the contexts of its runs", "runs", r.names())
			return false
		}
		r.Log.Info("draining: the node waits for its runs", "runs", r.names(), "left", time.Until(deadline).Round(time.Second))
	}
}

// names are the jobs and ids of the runs, for people.
func (r *Runner) names() string {
	var all []string
	for _, g := range r.Active.Grants() {
		all = append(all, g.Job.Name+" ("+g.Lease.ID+")")
	}
	slices.Sort(all)
	if more := len(all) - namesMost; more > 0 {
		all = append(all[:namesMost], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}
