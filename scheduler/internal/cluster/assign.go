package cluster

import (
	"maps"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/work"
)

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
