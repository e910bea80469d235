package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// handOver bounds how long a node goes on claiming its own jobs' ticks after it was drained or
	// stopped. handOverCheck is how often it checks whether all other nodes have learnt of it.
	handOver      = 2 * beatEvery
	handOverCheck = beatEvery / 4
)

// handover is the way out of a node that is drained or stopping. The other nodes learn of it with
// their next heartbeats. Until the last of them has, the node claims the ticks of the jobs that it
// owns, and nothing else. So no tick waits for the grace: for a moment two nodes claim it, and the
// ledger decides.
//
//	working ── drained ──► handing over ── all others know, or handOver is over ──► drained
//	   ▲                        │                                                      │
//	   └──────── resumed ───────┴─────────────────────── resumed ──────────────────────┘
//
//	any of these ── stopped ──► stopping ── handed over in the same way ──► claims nothing, leaves the roster
//
// A node that is drained when it starts claims nothing from the beginning. A node that stops hands
// over nothing when it has done so before, when no other node can take its jobs, or when Redis is
// unreachable; it cannot be resumed. Runs go on throughout.
type handover struct {
	live       bool // the agenda is running
	on         bool
	stopping   bool          // the node is to stop, and its record shows it
	over       chan struct{} // holds one signal: a stopping node has handed over
	othersKnow bool          // all other nodes have sent a heartbeat since
	since      int64         // when the node's record changed, ms of Redis' time
	until      time.Time     // when handOver is over

	seenIn int             // the changes of epochs when a heartbeat last showed a drain
	lost   *roster.Drained // a drain that Redis has lost, until it stands in the audit
}

// noteDrain notes the drain of the node's name from a heartbeat. stopping: the heartbeat announced
// the node's stop. changes is Lanes.Changes before the heartbeat.
func (h *heartbeat) noteDrain(ctx context.Context, view roster.View, stopping bool, changes int) {
	way := &h.handover
	if view.Drained != nil {
		way.seenIn = changes
	}
	defer h.auditLostDrain(ctx)
	was := h.state.Drain.Swap(view.Drained)
	switch d := view.Drained; {
	case stopping && !way.stopping:
		way.stopping = true
		if !way.on {
			h.begin(view, h.successors())
		}
	case stopping: // a drain of the name changes nothing now
	case d != nil && was == nil:
		h.log.Warn("drained: nothing new is claimed until the node is resumed; runs go on", "by", d.Author, "reason", d.Reason, "since", instant(work.Millis(d.Since)), "running", h.slots.Used())
		h.begin(view, h.state.Owned.Load() > 0)
		wait.Signal(h.beatNow) // the next record shows the drain
	case d == nil && was != nil:
		if view.Unannounced || h.lanes.Changes() != way.seenIn {
			way.lost = was
			h.log.Warn("the drain of this node was lost with Redis' data: nobody resumed the node, and it claims again", "drained_by", was.Author, "reason", was.Reason)
		} else {
			h.log.Info("resumed: the node claims again", "drained_by", was.Author)
		}
		way.on = false
		wait.Signal(h.beatNow)
	}
	way.othersKnow = !slices.ContainsFunc(view.Members, func(x roster.Member) bool {
		return x.ID != h.id && !x.Draining && x.Seen.UnixMilli() <= way.since
	})
}

// auditLostDrain notes in the audit which drain was lost, as soon as the node claims: the audit of
// an epoch before may be lost too.
func (h *heartbeat) auditLostDrain(ctx context.Context) {
	way := &h.handover
	if way.lost == nil || h.lanes.Holding() != nil {
		return
	}
	err := operate.Audit(ctx, h.ledger, operate.Action{
		Author: "Redis", Via: "node " + h.name, Name: "records lost", Target: "node " + h.name,
		Detail: "the drain of this node is lost, and the node claims again: " + drainedBy(*way.lost),
	})
	if err != nil {
		h.log.Warn("that the drain was lost is missing in the audit", "error", err)
	}
	way.lost = nil
}

// begin starts a handover, if there is something to hand over.
func (h *heartbeat) begin(view roster.View, some bool) {
	way := &h.handover
	way.on, way.since, way.until = some, view.NowMS, time.Now().Add(handOver)
	if way.live {
		h.inbox.Send(agenda.OwnOnly{})
	}
}

// reassigns reports whether the jobs are to be assigned again. changed: the view has changed.
func (h *heartbeat) reassigns(changed bool) bool {
	way := &h.handover
	if !way.on {
		return changed
	}
	if !way.othersKnow && time.Now().Before(way.until) {
		return false
	}
	way.on = false
	if !way.stopping {
		wait.Signal(h.beatNow) // the record shows then that nothing is owned any more
	}
	return true
}

// finished reports whether a stopping node has nothing to hand over and runs nothing. It leaves the
// roster next, and no heartbeat may come after that.
func (h *heartbeat) finished() bool {
	if !h.state.Stopping.Load() || h.successors() {
		return false
	}
	wait.Signal(h.handover.over)
	return h.slots.Used() == 0
}

// abandonHandover ends the handover of a stopping node when Redis is unreachable, because no other
// node can learn of it.
func (h *heartbeat) abandonHandover() {
	if h.state.Stopping.Load() {
		wait.Signal(h.handover.over)
	}
}

// successors reports whether another node can take over something that this node claims. Raced jobs
// do not count, because every node claims them already.
func (h *heartbeat) successors() bool {
	c := h.view.Load()
	waits := func(of map[*work.Job]bool) bool {
		for j := range of {
			if j.Placement != jobs.PlacementRace && slices.ContainsFunc(c.Holders(j), func(x sharding.Node) bool { return x.ID != h.id }) {
				return true
			}
		}
		return false
	}
	return !h.lanes.Unreachable() && h.lanes.Holding() == nil && (waits(h.first) || waits(h.handingOff))
}

// DrainReason returns the author and reason of the drain of the node's name; nil without a drain.
func (n *Cluster) DrainReason() error {
	d := n.State.Drain.Load()
	if d == nil {
		return nil
	}
	return fmt.Errorf("draining: %s; `nodes resume %s` ends it", drainedBy(*d), n.Name)
}

// drainedBy is the author and reason of a name's drain, as text.
func drainedBy(d roster.Drained) string {
	switch {
	case d.Since.IsZero():
		return "drained, by a version whose record this one cannot read"
	case d.Reason == "":
		return "drained by " + d.Author
	}
	return "drained by " + d.Author + ": " + d.Reason
}
