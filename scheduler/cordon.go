package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
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
type handing struct {
	live    bool // the engine runs
	on      bool
	leaving bool          // it was told to end, and the others can see that
	over    chan struct{} // holds one signal: a node that was told to end has handed over
	known   bool          // all others have beaten since
	since   int64         // Redis' time of the beat that made it known, ms
	until   time.Time     // when handOver is over
}

// heed takes up what a beat says of the drain of the node's name, and, of one that told the others so, that the node ends.
func (m *members) heed(view sharding.View, leaving bool) {
	n, h := m.n, &m.handing
	was := n.cordon.Swap(view.Drained)
	switch d := view.Drained; {
	case leaving && !h.leaving:
		h.leaving = true
		if !h.on {
			m.begin(view, m.heirs())
		}
	case leaving: // whatever becomes of its name
	case d != nil && was == nil:
		n.log.Warn("drained: nothing new is claimed until the node is resumed; what runs goes on", "by", d.Author, "reason", d.Reason, "since", stampOf(millis(d.Since)), "running", n.slots.used())
		m.begin(view, m.owned > 0)
		signal(n.beatNow) // with a state that says that the node knows
	case d == nil && was != nil:
		n.log.Info("resumed: the node claims again", "drained_by", was.Author)
		h.on = false
		signal(n.beatNow)
	}
	h.known = !slices.ContainsFunc(view.Members, func(x sharding.Member) bool {
		return x.ID != n.id && !x.Draining && x.Seen.UnixMilli() <= h.since
	})
}

// begin begins to hand over, if there is anything.
func (m *members) begin(view sharding.View, some bool) {
	h := &m.handing
	h.on, h.since, h.until = some, view.NowMS, time.Now().Add(handOver)
	if h.live {
		m.n.engine.do(m.n.engine.shed)
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
		signal(m.n.beatNow) // whoever waits for the drain sees that nothing is owned any more
	}
	return true
}

// ends says whether the node was told to end, has nothing to hand over and runs nothing: then it leaves the roster next,
// and no beat is to get in the way.
func (m *members) ends() bool {
	if !m.n.leaving.Load() || m.heirs() {
		return false
	}
	signal(m.handing.over)
	return m.n.slots.used() == 0
}

// unheard gives up handing over when the node ends and Redis does not answer: nobody can be told.
func (m *members) unheard() {
	if m.n.leaving.Load() {
		signal(m.handing.over)
	}
}

// heirs says whether others can take over something that this node claims. What all nodes race for they have already.
func (m *members) heirs() bool {
	c := m.n.crowd.Load()
	waits := func(of map[*job]bool) bool {
		for j := range of {
			if j.Placement != jobs.PlacementRace && slices.ContainsFunc(c.holders(j), func(x sharding.Node) bool { return x.ID != m.n.id }) {
				return true
			}
		}
		return false
	}
	return !m.n.away() && m.n.failover.holding() == nil && (waits(m.first) || waits(m.giving))
}

// away says whether Redis does not answer, or on a Cluster the master where nodes meet, as far as this node knows.
func (n *Node) away() bool {
	return errors.Is(n.health.trouble(), locking.ErrUnreachable) || n.quiet.of(home)
}

// cordonWords says who drained the node's name, nil when nobody did.
func (n *Node) cordonWords() error {
	d := n.cordon.Load()
	if d == nil {
		return nil
	}
	return fmt.Errorf("draining: %s; `nodes resume %s` ends it", drainedBy(*d), n.cfg.Name)
}

// drainedBy is who drained a name, and why.
func drainedBy(d sharding.Drained) string {
	switch {
	case d.Since.IsZero():
		return "drained, in a record that this version cannot read"
	case d.Reason == "":
		return "drained by " + d.Author
	}
	return "drained by " + d.Author + ": " + d.Reason
}

// shed puts away what this node would take only because others have not: late ticks and shards that wait for a slot, and
// what is pending.
func (e *engine) shed() {
	for _, j := range e.jobs {
		if !j.owned {
			e.agenda.drop(j)
		}
	}
	e.pending = nil
	e.shards = slices.DeleteFunc(e.shards, func(p ledger.Lease) bool { return !slices.Contains(e.byName[p.Job].mine, p.Shard) })
}
