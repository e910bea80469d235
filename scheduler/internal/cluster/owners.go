package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// placementGroup is a set of nodes and the jobs that exactly these nodes may run. Each of the nodes
// holds all of the jobs, so they agree on the list and on the owners, whatever else each holds.
type placementGroup struct {
	nodes []sharding.Node
	keys  []string    // for sharding.Assign
	jobs  []*work.Job // the jobs of the keys
	raced []*work.Job // all nodes go first for them, so they count for no node's share
}

// placementGroups groups jobs by the nodes that may run them. Jobs that no node may run are left
// out, and sharded jobs: their shards are assigned separately.
func (c *View) placementGroups(all []*work.Job) []*placementGroup {
	var list []*placementGroup
	byWho := make(map[string]*placementGroup)
	who := make([]byte, len(c.Nodes)) // reused for each job: copying the nodes would cost more than assigning them
	for _, j := range all {
		if j.Shards > 1 || !c.mark(who, j) {
			continue
		}
		y := byWho[string(who)]
		if y == nil {
			y = &placementGroup{nodes: c.Holders(j)}
			byWho[string(who)] = y
			list = append(list, y)
		}
		if j.Placement == jobs.PlacementRace {
			y.raced = append(y.raced, j)
			continue
		}
		y.keys, y.jobs = append(y.keys, j.Name), append(y.jobs, j)
	}
	return list
}

// mark writes into who, for each node, 1 if the node may run a job, else 0. It reports whether any
// node may.
func (c *View) mark(who []byte, j *work.Job) bool {
	some := false
	for i := range c.Nodes {
		who[i] = 0
		if c.mayRun(&c.Nodes[i], j) {
			who[i], some = 1, true
		}
	}
	return some
}

// mayRun reports whether a node may run a job: it holds this definition, does not drain, and has
// the job's labels.
func (c *View) mayRun(n *sharding.Node, j *work.Job) bool {
	return !n.Draining && sharding.Matches(j.Labels, n.Labels) && c.Sets[n.Set].Holds(j.Name, j.Digest)
}

// owned are the jobs that the node owns.
func (c *View) owned(all []*work.Job, id string) map[*work.Job]bool {
	owned := make(map[*work.Job]bool)
	for _, y := range c.placementGroups(all) {
		self := indexOf(y.nodes, id)
		if self < 0 {
			continue
		}
		for i, first := range sharding.Assign(y.keys, y.nodes) {
			if first == self {
				owned[y.jobs[i]] = true
			}
		}
		for _, j := range y.raced {
			owned[j] = true
		}
	}
	return owned
}

// shardsFirst are the shards of a job that a node owns: in a race, all of them.
func shardsFirst(j *work.Job, holders []sharding.Node, id string) []int {
	if j.Placement != jobs.PlacementRace {
		return shardsOf(j, holders, id)
	}
	if indexOf(holders, id) < 0 {
		return nil
	}
	all := make([]int, j.Shards)
	for shard := range all {
		all[shard] = shard
	}
	return all
}

func indexOf(nodes []sharding.Node, id string) int {
	return slices.IndexFunc(nodes, func(n sharding.Node) bool { return n.ID == id })
}

// Firsts maps jobs to their owners. Raced and sharded jobs have several owners: here it is the one
// chosen by hashing.
func (c *View) Firsts(all []*work.Job) map[*work.Job]sharding.Node {
	firsts := make(map[*work.Job]sharding.Node, len(all))
	for _, y := range c.placementGroups(all) {
		for i, first := range sharding.Assign(y.keys, y.nodes) {
			firsts[y.jobs[i]] = y.nodes[first]
		}
	}
	for _, j := range all {
		if _, known := firsts[j]; !known {
			if first, ok := sharding.Owner(j.Name, c.Holders(j)); ok {
				firsts[j] = first
			}
		}
	}
	return firsts
}

// shardsOf are the shards of a job that a node owns. Each job's shards are spread
// evenly over its nodes, because they run at the same time.
func shardsOf(j *work.Job, holders []sharding.Node, id string) (mine []int) {
	keys := make([]string, j.Shards)
	for shard := range keys {
		keys[shard] = sharding.Part(j.Name, shard, j.Shards)
	}
	for shard, node := range sharding.Assign(keys, holders) {
		if node >= 0 && holders[node].ID == id {
			mine = append(mine, shard)
		}
	}
	return mine
}

// assign determines the jobs that this node owns, and passes them to the agenda.
func (h *heartbeat) assign() {
	c := h.view.Load()
	owned, shards := c.owned(h.jobs.All(), h.id), make(map[*work.Job][]int)
	for _, j := range h.jobs.All() {
		if j.Shards <= 1 {
			continue
		}
		if mine := shardsFirst(j, c.Holders(j), h.id); len(mine) > 0 {
			owned[j], shards[j] = true, mine
		}
	}
	goesFirst := len(owned)
	h.state.Owned.Store(int64(goesFirst))
	h.handOff(owned)
	h.log.Info("roster changed", "nodes", len(c.Nodes), "jobs", h.jobs.Len(), "owned", goesFirst)
	maps.Copy(owned, h.handingOff)
	h.view.owned.Store(&owned)
	h.inbox.Send(agenda.Owned{Jobs: owned, Shards: shards})
}

// handOff notes the jobs that another node owns from now on. That node learns it with
// its next heartbeat; until then this node goes on claiming them. For a moment two nodes claim a
// tick, and the ledger decides. A node that is drained or stops does not do so.
func (h *heartbeat) handOff(owned map[*work.Job]bool) {
	now, giving := time.Now(), make(map[*work.Job]bool)
	for j := range h.first {
		if !owned[j] && j.Shards <= 1 {
			giving[j] = true
		}
	}
	if len(giving) > 0 {
		h.handOffUntil = now.Add(handOver)
	}
	if now.Before(h.handOffUntil) {
		for j := range h.handingOff {
			if !owned[j] {
				giving[j] = true
			}
		}
	}
	h.first, h.handingOff = maps.Clone(owned), giving
	if h.state.Drain.Load() != nil || h.state.Stopping.Load() {
		h.handingOff = nil
	}
}
