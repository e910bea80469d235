package scheduler

import (
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/work"
)

// Stats are a node's figures at one instant, for metrics. Counts are of this node since it was
// made.
type Stats struct {
	// Slots is how many runs the node may carry at once, and SlotsUsed how many it carries, from
	// claim to settle.
	Slots, SlotsUsed int
	// ClockOffset is how far Redis' clock is ahead of the node's own.
	ClockOffset time.Duration
	// Jobs counts jobs by their state on this node.
	Jobs JobStates
	// Masters are the Redis masters with jobs: one, or a Cluster's. None before the node has
	// joined.
	Masters []MasterStats
	// Claims counts the answers to the node's claims, by the answer: granted, held, stale and so
	// on. None before the node has joined.
	Claims map[string]int64
	// LeasesLost is how many runs lost their leases while their functions were running.
	LeasesLost int64
	// Stalled is how often a run made no progress for its job's StallAfter.
	Stalled int64
	// HooksDropped is Node.HooksDropped.
	HooksDropped int64
}

// JobStates counts jobs by their state on a node. A job may count in more than one.
type JobStates struct {
	All        int // jobs that the node has
	Owned      int // jobs for which the node goes first, of those with its definition; also jobs that it does not claim
	Standby    int // jobs that another generation runs
	Superseded int // jobs of which another definition is stored
	// Unregistered are jobs that the node does not claim for another reason: their definitions are
	// not stored yet, or Redis has lost them.
	Unregistered int
	// NoNode are overdue jobs that no living node can run, also jobs that this node does not have.
	// Each is known to the node that last looked; add them up over all nodes.
	NoNode int
}

// MasterStats is a Redis master as the node finds it.
type MasterStats struct {
	Addr string // its address; "sentinel" for the one behind Sentinel
	Up   bool   // it answers and takes writes; of a Cluster: its breaker is closed
}

// Stats returns the node's figures. It may be called at any time, sends nothing and does not wait
// for Redis.
func (n *Node) Stats() Stats {
	s := Stats{
		Slots: n.cfg.MaxRunning, ClockOffset: n.clock.Ahead(), HooksDropped: n.HooksDropped(),
		Jobs: JobStates{All: n.jobs.Len(), Owned: int(n.state.Owned.Load())},
	}
	if by := n.state.Unclaimable.Load(); by != nil {
		for why, count := range *by {
			switch why {
			case work.Standby:
				s.Jobs.Standby += count
			case work.Superseded, work.Displaced:
				s.Jobs.Superseded += count
			default:
				s.Jobs.Unregistered += count
			}
		}
	}
	r := n.roles.Load()
	if r == nil {
		s.Jobs.Unregistered = s.Jobs.All
		return s
	}
	s.Stalled = r.runner.Stalled()
	s.SlotsUsed, s.LeasesLost, s.Claims, s.Jobs.NoNode = r.slots.Used(), r.runner.LeasesLost(), r.agenda.AnswerCounts(), int(r.lanes.NoNodes())
	for _, m := range r.lanes.Masters() {
		if m.Addr == "" {
			m.Addr = addressOf(n.client)
		}
		s.Masters = append(s.Masters, MasterStats{Addr: m.Addr, Up: m.Up})
	}
	return s
}

// HooksDropped is how many events were dropped because the queue was full, or made a hook panic.
func (n *Node) HooksDropped() int64 { return n.events.missing.Load() }

// JobNames are the names of the node's jobs, in the order in which they were added.
func (n *Node) JobNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, j := range n.jobs.All() {
			if !yield(j.Name) {
				return
			}
		}
	}
}

// addressOf is the address of a client's only server.
func addressOf(client redis.UniversalClient) string {
	c, ok := client.(*redis.Client)
	if !ok || c.Options().Addr == "FailoverClient" { // as go-redis calls it
		return "sentinel"
	}
	return c.Options().Addr
}
