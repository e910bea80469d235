package cluster

import (
	"maps"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Changed is told that the node has other jobs. It does not wait.
func (n *Cluster) Changed() {
	wait.Signal(n.registrar.changed)
}

// changes takes up which jobs the node has.
func (r *registrar) changes() {
	has := make(map[*work.Job]bool, r.n.Jobs.Len())
	for _, j := range r.n.Jobs.All() {
		if has[j] = true; !r.has[j] {
			r.outside[j] = work.Unregistered
		}
	}
	for j := range r.has {
		if !has[j] {
			r.n.Lanes.Displaced(j)
		}
	}
	gone := func(j *work.Job, _ string) bool { return !has[j] }
	maps.DeleteFunc(r.outside, gone)
	maps.DeleteFunc(r.rivals, gone)
	maps.DeleteFunc(r.kept, func(j *work.Job, _ bool) bool { return !has[j] })
	r.has = has
}
