package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/sharding"
)

const (
	// handOver bounds how long a drained node goes on with what it owns, and handLook is how often it looks
	// meanwhile whether all others know.
	handOver = 2 * beatEvery
	handLook = beatEvery / 4
)

// handing is a drained node's way out. The others learn of the drain with their next beats, each in its own
// time; until the last of them knows, the node claims the ticks of what it owns, and nothing else. So no
// tick waits for the grace: for a moment two nodes ask for it, and the claim decides.
//
//	working ── drained ──► handing over ── all others have beaten, or handOver is over ──► cordoned
//	   ▲                        │                                                            │
//	   └──────── resumed ───────┴──────────────────────── resumed ───────────────────────────┘
//
// A node that is drained when it starts is cordoned at once. What runs is left alone throughout.
type handing struct {
	live  bool // the engine runs
	on    bool
	known bool      // all others have beaten since
	since int64     // Redis' time of the beat that made the drain known, ms
	until time.Time // when handOver is over
}

// heed takes up what a beat says of the drain of the node's name.
func (m *members) heed(view sharding.View) {
	n, h := m.n, &m.handing
	was := n.cordon.Swap(view.Drained)
	switch d := view.Drained; {
	case d != nil && was == nil:
		n.log.Warn("drained: nothing new is claimed until the node is resumed; what runs goes on", "by", d.Author, "reason", d.Reason, "since", stampOf(millis(d.Since)), "running", n.slots.used())
		h.on, h.since, h.until = m.owned > 0, view.NowMS, time.Now().Add(handOver)
		if h.live {
			n.engine.do(n.engine.shed)
		}
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
	signal(m.n.beatNow) // whoever waits for the drain sees that nothing is owned any more
	return true
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

// shed puts away the late ticks of others' jobs that wait for a slot.
func (e *engine) shed() {
	for _, j := range e.jobs {
		if !j.owned {
			e.agenda.drop(j)
		}
	}
}
