package cluster

import (
	"context"
	"maps"

	"github.com/escapement/escapement/scheduler/internal/roster"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Changed is told that the node has other jobs. It does not wait.
func (n *Cluster) Changed() {
	wait.Signal(n.registrar.changed)
	wait.Signal(n.Beat)
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
	r.has = has
}

// announce says which jobs the node has, when others than before.
func (m *members) announce(ctx context.Context) error {
	version := m.n.Jobs.Version()
	if version == m.held {
		return nil
	}
	m.defs = make(map[string]string, m.n.Jobs.Len())
	for _, j := range m.n.Jobs.All() {
		m.defs[j.Name] = j.Digest
	}
	m.set = roster.SetDigest(m.defs)
	if err := m.n.Roster.Announce(ctx, m.set, m.defs); err != nil {
		return redisconn.Explain("announce the node's jobs", err)
	}
	m.held = version
	return nil
}
