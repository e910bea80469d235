package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// handOver bounds how long a node that is to take nothing more goes on with what it owns, and handLook is how often
	// it looks meanwhile whether all others know.
	handOver = 2 * beatEvery
	handLook = beatEvery / 4
)

// handing is the way out of a node that an operator drained, or that was told to end. The others learn of it with
// their next beats, each in its own time; until the last of them knows, the node claims the ticks of what it owns,
// and nothing else. So no tick waits for the grace: for a moment two nodes ask for it, and the claim decides.
//
//	working ── drained ──► handing over ── all others have beaten, or handOver is over ──► cordoned
//	   ▲                        │                                                            │
//	   └──────── resumed ───────┴──────────────────────── resumed ───────────────────────────┘
//
//	any of these ── told to end ──► leaving ── handed over in the same way ──► claims nothing, leaves the roster
//
// A node that is drained when it starts is cordoned at once. One that is told to end need not hand over what it has
// handed over before, or what nobody else can take, nor when Redis is away; and it is not resumed. What runs is left alone
// throughout.
type handover struct {
	live    bool // the agenda runs
	on      bool
	leaving bool          // it was told to end, and the others can see that
	over    chan struct{} // holds one signal: a node that was told to end has handed over
	known   bool          // all others have beaten since
	since   int64         // Redis' time of the beat that made it known, ms
	until   time.Time     // when handOver is over
}

// heed takes up what a beat says of the drain of the node's name, and, of one that told the others so, that the node ends.
func (m *members) heed(view roster.View, leaving bool) {
	n, h := m.n, &m.handing
	was := n.Standing.Drain.Swap(view.Drained)
	switch d := view.Drained; {
	case leaving && !h.leaving:
		h.leaving = true
		if !h.on {
			m.begin(view, m.successors())
		}
	case leaving: // whatever becomes of its name
	case d != nil && was == nil:
		n.Log.Warn("drained: nothing new is claimed until the node is resumed; what runs goes on", "by", d.Author, "reason", d.Reason, "since", instant(work.Millis(d.Since)), "running", n.Slots.Used())
		m.begin(view, m.owned > 0)
		wait.Signal(n.Beat) // with a state that says that the node knows
	case d == nil && was != nil:
		n.Log.Info("resumed: the node claims again", "drained_by", was.Author)
		h.on = false
		wait.Signal(n.Beat)
	}
	h.known = !slices.ContainsFunc(view.Members, func(x roster.Member) bool {
		return x.ID != n.ID && !x.Draining && x.Seen.UnixMilli() <= h.since
	})
}

// begin begins to hand over, if there is anything.
func (m *members) begin(view roster.View, some bool) {
	h := &m.handing
	h.on, h.since, h.until = some, view.NowMS, time.Now().Add(handOver)
	if h.live {
		m.n.Inbox.Send(agenda.OwnOnly{})
	}
}

// reassigns says whether the jobs are to be assigned anew, now that the crowd has changed or not.
func (m *members) reassigns(changed bool) bool {
	h := &m.handing
	if !h.on {
		return changed
	}
	if !h.known && time.Now().Before(h.until) {
		return false
	}
	h.on = false
	if !h.leaving {
		wait.Signal(m.n.Beat) // whoever waits for the drain sees that nothing is owned any more
	}
	return true
}

// ends says whether the node was told to end, has nothing to hand over and runs nothing: then it leaves the roster next,
// and no beat is to get in the way.
func (m *members) ends() bool {
	if !m.n.Standing.Leaving.Load() || m.successors() {
		return false
	}
	wait.Signal(m.handing.over)
	return m.n.Slots.Used() == 0
}

// unheard gives up handing over when the node ends and Redis does not answer: nobody can be told.
func (m *members) unheard() {
	if m.n.Standing.Leaving.Load() {
		wait.Signal(m.handing.over)
	}
}

// heirs says whether others can take over something that this node claims. What all nodes race for they have already.
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
	return !m.n.Lanes.Unreachable() && m.n.Lanes.Holding() == nil && (waits(m.first) || waits(m.giving))
}

// DrainReason says who drained the node's name, nil when nobody did.
func (n *Cluster) DrainReason() error {
	d := n.Standing.Drain.Load()
	if d == nil {
		return nil
	}
	return fmt.Errorf("draining: %s; `nodes resume %s` ends it", drainedBy(*d), n.Name)
}

// drainedBy is who drained a name, and why.
func drainedBy(d roster.Drained) string {
	switch {
	case d.Since.IsZero():
		return "drained, in a record that this version cannot read"
	case d.Reason == "":
		return "drained by " + d.Author
	}
	return "drained by " + d.Author + ": " + d.Reason
}
