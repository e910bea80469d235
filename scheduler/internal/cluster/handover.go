package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// handOver bounds how long a node goes on claiming what it owns after it was drained or told to
	// stop. handOverCheck is how often it checks whether all others know.
	handOver      = 2 * beatEvery
	handOverCheck = beatEvery / 4
)

// handover is the way out of a node that was drained or told to stop. The others learn of it with
// their next heartbeats. Until the last of them knows, the node claims the ticks of the jobs that
// it owns, and nothing else. So no tick waits for the grace: for a moment two nodes claim it, and
// the ledger decides.
//
//	working ── drained ──► handing over ── all others know, or handOver is over ──► drained
//	   ▲                        │                                                      │
//	   └──────── resumed ───────┴─────────────────────── resumed ──────────────────────┘
//
//	any of these ── told to stop ──► stopping ── handed over in the same way ──► claims nothing, leaves the roster
//
// A node that is drained when it starts claims nothing from the beginning. A node that stops hands
// over nothing when it has done so before, when no other node can take its jobs, or when Redis is
// unreachable; it cannot be resumed. Runs go on throughout.
type handover struct {
	live       bool // the agenda is running
	on         bool
	stopping   bool          // the node is to stop, and its record says so
	over       chan struct{} // holds one signal: a stopping node has handed over
	othersKnow bool          // all others have sent a heartbeat since
	since      int64         // when the node's record changed, ms of Redis' time
	until      time.Time     // when handOver is over

	seenIn int             // the changes of epochs when a heartbeat last showed a drain
	lost   *roster.Drained // a drain that Redis has lost, until it stands in the audit
}

// noteDrain notes what a heartbeat says of the drain of the node's name. stopping: the heartbeat
// told the others that the node stops. changes is Lanes.Changes before the heartbeat.
func (m *members) noteDrain(ctx context.Context, view roster.View, stopping bool, changes int) {
	n, h := m.n, &m.handover
	if view.Drained != nil {
		h.seenIn = changes
	}
	defer m.auditLostDrain(ctx)
	was := n.State.Drain.Swap(view.Drained)
	switch d := view.Drained; {
	case stopping && !h.stopping:
		h.stopping = true
		if !h.on {
			m.begin(view, m.successors())
		}
	case stopping: // a drain of the name changes nothing now
	case d != nil && was == nil:
		n.Log.Warn("drained: nothing new is claimed until the node is resumed; runs go on", "by", d.Author, "reason", d.Reason, "since", instant(work.Millis(d.Since)), "running", n.Slots.Used())
		m.begin(view, m.n.State.Owned.Load() > 0)
		wait.Signal(n.Beat) // with a record that says that the node knows
	case d == nil && was != nil:
		if view.Unannounced || n.Lanes.Changes() != h.seenIn {
			h.lost = was
			n.Log.Warn("the drain of this node was lost with Redis' data: nobody resumed the node, and it claims again", "drained_by", was.Author, "reason", was.Reason)
		} else {
			n.Log.Info("resumed: the node claims again", "drained_by", was.Author)
		}
		h.on = false
		wait.Signal(n.Beat)
	}
	h.othersKnow = !slices.ContainsFunc(view.Members, func(x roster.Member) bool {
		return x.ID != n.ID && !x.Draining && x.Seen.UnixMilli() <= h.since
	})
}

// auditLostDrain notes in the audit which drain was lost, as soon as the node claims: the audit of
// an epoch before may be lost too.
func (m *members) auditLostDrain(ctx context.Context) {
	h := &m.handover
	if h.lost == nil || m.n.Lanes.Holding() != nil {
		return
	}
	err := m.n.Ledger.Audit(ctx, ledger.Action{
		Author: "Redis", Via: "node " + m.n.Name, Name: "records lost", Target: "node " + m.n.Name,
		Detail: "the drain of this node is lost, and the node claims again: " + drainedBy(*h.lost),
	})
	if err != nil {
		m.n.Log.Warn("that the drain was lost is missing in the audit", "error", err)
	}
	h.lost = nil
}

// begin starts a handover, if there is something to hand over.
func (m *members) begin(view roster.View, some bool) {
	h := &m.handover
	h.on, h.since, h.until = some, view.NowMS, time.Now().Add(handOver)
	if h.live {
		m.n.Inbox.Send(agenda.OwnOnly{})
	}
}

// reassigns reports whether the jobs are to be assigned again. changed says that the view has
// changed.
func (m *members) reassigns(changed bool) bool {
	h := &m.handover
	if !h.on {
		return changed
	}
	if !h.othersKnow && time.Now().Before(h.until) {
		return false
	}
	h.on = false
	if !h.stopping {
		wait.Signal(m.n.Beat) // the record shows then that nothing is owned any more
	}
	return true
}

// finished reports whether a stopping node has nothing to hand over and runs nothing. It leaves the
// roster next, and no heartbeat may come after that.
func (m *members) finished() bool {
	if !m.n.State.Stopping.Load() || m.successors() {
		return false
	}
	wait.Signal(m.handover.over)
	return m.n.Slots.Used() == 0
}

// abandonHandover ends the handover of a stopping node when Redis is unreachable, because no other
// node can learn of it.
func (m *members) abandonHandover() {
	if m.n.State.Stopping.Load() {
		wait.Signal(m.handover.over)
	}
}

// successors reports whether another node can take over something that this node claims. Raced jobs
// do not count, because every node claims them already.
func (m *members) successors() bool {
	c := m.n.View.Load()
	waits := func(of map[*work.Job]bool) bool {
		for j := range of {
			if j.Placement != jobs.PlacementRace && slices.ContainsFunc(c.Holders(j), func(x sharding.Node) bool { return x.ID != m.n.ID }) {
				return true
			}
		}
		return false
	}
	return !m.n.Lanes.Unreachable() && m.n.Lanes.Holding() == nil && (waits(m.first) || waits(m.handingOff))
}

// DrainReason says who drained the node's name; nil when nobody did.
func (n *Cluster) DrainReason() error {
	d := n.State.Drain.Load()
	if d == nil {
		return nil
	}
	return fmt.Errorf("draining: %s; `nodes resume %s` ends it", drainedBy(*d), n.Name)
}

// drainedBy says who drained a name, and why.
func drainedBy(d roster.Drained) string {
	switch {
	case d.Since.IsZero():
		return "drained, by a version whose record this one cannot read"
	case d.Reason == "":
		return "drained by " + d.Author
	}
	return "drained by " + d.Author + ": " + d.Reason
}
