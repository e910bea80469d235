package cluster

import (
	"sync/atomic"

	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// LatestView is the cluster at the last heartbeat.
type LatestView struct {
	last  atomic.Pointer[View]
	owned atomic.Pointer[map[*work.Job]bool] // the jobs that this node owns
}

// Load returns the view; nil before the first heartbeat.
func (v *LatestView) Load() *View { return v.last.Load() }

func (v *LatestView) set(c *View) { v.last.Store(c) }

// Living returns the nodes; none before the first heartbeat.
func (v *LatestView) Living() []sharding.Node {
	if c := v.Load(); c != nil {
		return c.Nodes
	}
	return nil
}

// NoNode is View.NoNode of the latest view.
func (v *LatestView) NoNode(job, digest string, labels map[string]string) string {
	return v.Load().NoNode(job, digest, labels)
}

// Digests is View.Digests of the latest view.
func (v *LatestView) Digests(job string) []string { return v.Load().Digests(job) }

// Owns reports whether this node owns a job, or a shard of it.
func (v *LatestView) Owns(j *work.Job) bool {
	owned := v.owned.Load()
	return owned != nil && (*owned)[j]
}
