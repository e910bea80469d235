package cluster

import (
	"maps"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

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
