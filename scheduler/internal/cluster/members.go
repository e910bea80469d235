package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

const (
	// beatEvery is how often a node renews its place in the roster.
	beatEvery = time.Second
	// RosterTTL is how long a node that vanished stays in the roster; its late ticks are taken by
	// the sweep long before that.
	RosterTTL = 5 * time.Second
)

// members keeps the node in the roster, learns who else is there, and tells the agenda for which
// jobs this node goes first.
type members struct {
	n     *Cluster
	start time.Time
	owned int

	first  map[*work.Job]bool // for which this node goes first, as last assigned
	giving map[*work.Job]bool // for which it went first before, and goes on to until the others have surely heard
	given  time.Time          // when that is

	epoch  int64     // of promotions, as the last beat showed it
	beaten time.Time // when a beat was last answered
	doubt  time.Time // until then, who is missing from the roster may be about to beat again

	strange, damaged lane.UnknownFormats
	warned           map[string]bool // nodes with this node's name, by id
	handing          handover
}

func newMembers(n *Cluster) *members {
	m := &members{n: n, warned: make(map[string]bool), strange: lane.UnknownFormats{Log: n.Log}, damaged: lane.UnknownFormats{Log: n.Log}, handing: handover{over: make(chan struct{}, 1)}, start: n.Wall()}
	return m
}

// join enters the roster before anything is registered or claimed, so that the others know which
// definitions live.
func (m *members) join(ctx context.Context) error {
	if err := m.n.announcer.announce(ctx); err != nil {
		return err
	}
	_, err := m.beat(ctx)
	return err
}

// run beats until ctx ends. It is the only role that touches m after join.
func (m *members) run(ctx context.Context) {
	m.assign()
	m.handing.live = true
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C: // when both are there, one beat does for both
			wait.Drop(m.n.Beat)
			timer.Reset(beatEvery)
		case <-m.n.Beat:
			if wait.Drop(timer.C) {
				timer.Reset(beatEvery)
			}
		}
		if m.ends() {
			continue
		}
		changed, err := m.beat(ctx)
		if err != nil {
			if ctx.Err() == nil {
				m.n.Lanes.Beaten(err)
			}
			m.unheard()
			continue
		}
		m.n.Lanes.Beaten(nil)
		if m.reassigns(changed) || !m.handing.on && len(m.giving) > 0 && !time.Now().Before(m.given) {
			m.assign()
		}
		switch h := &m.handing; {
		case h.on:
			timer.Reset(handLook)
		case h.leaving:
			wait.Signal(h.over)
		}
	}
}

// leave takes the node out of the roster, so that the others take over at once.
func (m *members) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return redisconn.Classify("leave the roster", m.n.Roster.Leave(ctx, m.n.ID))
}

// beat renews the node's record and says whether the crowd changed.
func (m *members) beat(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	self := m.self()
	view, err := m.n.Roster.Beat(ctx, self)
	if err == nil && view.Unannounced {
		wait.Signal(m.n.Lost) // Redis has lost what it knew, or may have
		of := m.n.announcer.now.Load()
		err = m.n.Roster.Announce(ctx, of.set, of.names)
	}
	if err != nil {
		return false, redisconn.Classify("beat", err)
	}
	m.strange.Note(view.Foreign, "nodes in the roster")
	m.heed(view, self.Draining)
	if view.Epoch != m.epoch {
		m.epoch = view.Epoch
		wait.Signal(m.n.registrar.epoch)
	}
	old := m.n.View.Load()
	nodes := m.kept(old, view.Nodes())
	next, err := m.crowd(ctx, old, nodes)
	if err != nil {
		return false, err
	}
	next.builds(view.Members, old)
	m.n.Lanes.Seen(view.Members, nodes)
	same := old != nil && slices.EqualFunc(old.Nodes, nodes, sameNode) && len(old.Sets) == len(next.Sets) && len(old.known.chunks) == len(next.known.chunks)
	if !same || !maps.Equal(old.standby, next.standby) {
		m.n.View.set(next)
	}
	if !same {
		wait.Signal(m.n.registrar.stirred)
		m.namesakes(nodes)
	}
	return !same, nil
}

// kept adds to the nodes in the roster those that it dropped while no beat was answered: they have most likely lived
// through that as this node has. Else the first to be answered would go first for everything.
func (m *members) kept(old *View, nodes []sharding.Node) []sharding.Node {
	now := time.Now()
	if !m.beaten.IsZero() && now.Sub(m.beaten) > RosterTTL/2 {
		m.doubt = now.Add(2 * beatEvery)
	}
	m.beaten = now
	if old == nil || !now.Before(m.doubt) {
		return nodes
	}
	for _, was := range old.Nodes {
		if indexOf(nodes, was.ID) < 0 {
			nodes = append(nodes, was)
		}
	}
	slices.SortFunc(nodes, func(a, b sharding.Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes
}

// namesakes warns, once for each, of other nodes with this node's name: they are told apart by id,
// but people read names.
func (m *members) namesakes(nodes []sharding.Node) {
	for _, n := range nodes {
		if n.Name == m.n.Name && n.ID != m.n.ID && !m.warned[n.ID] {
			m.warned[n.ID] = true
			m.n.Log.Warn("another node has the same name; runs and owners are shown by name, so give each its own", "other", n.ID)
		}
	}
	for id := range m.warned {
		if !slices.ContainsFunc(nodes, func(n sharding.Node) bool { return n.ID == id }) {
			delete(m.warned, id)
		}
	}
}

func sameNode(a, b sharding.Node) bool {
	return a.ID == b.ID && a.Weight == b.Weight && a.Set == b.Set && a.Draining == b.Draining && maps.Equal(a.Labels, b.Labels)
}

// crowd is these nodes with what they hold: what is new to this node is read. What cannot be read now is tried again at the next beat.
func (m *members) crowd(ctx context.Context, old *View, nodes []sharding.Node) (c *View, err error) {
	before := m.n.announcer.now.Load().known()
	if old != nil {
		before = old.known
	}
	c = &View{Nodes: nodes}
	var unread int
	c.Sets, c.known, unread, err = holdings(ctx, m.n.Roster, m.n.Ledger.Partitions(), nodes, before, m.read)
	m.damaged.Note(unread, "lists of what nodes hold, in the roster; they may hold anything")
	return c, err
}

// read reads chunks, but for those of partitions whose masters are unreachable.
func (m *members) read(ctx context.Context, wanted map[int][]string) (map[string]map[string]string, error) {
	all := make(map[string]map[string]string)
	for _, part := range slices.Sorted(maps.Keys(wanted)) {
		err := m.n.Lanes.At("beat", part, func() error {
			some, err := m.n.Ledger.Held(ctx, map[int][]string{part: wanted[part]})
			maps.Copy(all, some)
			return err
		})
		if err != nil && !errors.Is(err, lane.ErrBreaker) {
			return all, err
		}
	}
	return all, nil
}

func (m *members) self() roster.Member {
	n := m.n
	told, placed := n.Lanes.Servers()
	state, owned := roster.StateActive, m.owned
	switch {
	case n.Standing.Leaving.Load() || n.Standing.Drain.Load() != nil:
		state = roster.StateDraining
	case n.registrar.idle.Load():
		state, owned = roster.StateStandby, 0 // it would go first for them, and claims none
	}
	return roster.Member{
		Node: sharding.Node{
			ID: n.ID, Name: n.Name, Weight: n.Weight, Labels: n.Labels, Set: n.announcer.now.Load().set, Draining: n.Standing.Leaving.Load(),
		},
		Version: n.Version, Revision: n.Revision, Generation: n.Generation, State: state, Started: m.start,
		OffsetMS: n.Clock.Ahead().Milliseconds(), Running: n.Slots.Used(), Jobs: n.Jobs.Len(), Owned: owned,
		Told: told, Placed: placed, Trouble: n.trouble(),
	}
}

// assign works out for which jobs this node goes first and tells the agenda.
func (m *members) assign() {
	c := m.n.View.Load()
	owned, shards := c.owned(m.n.Jobs.All(), m.n.ID), make(map[*work.Job][]int)
	for _, j := range m.n.Jobs.All() {
		if j.Shards <= 1 {
			continue
		}
		if mine := m.n.shardsFirst(j, c.Holders(j)); len(mine) > 0 {
			owned[j], shards[j] = true, mine
		}
	}
	m.owned = len(owned)
	m.give(owned)
	m.n.Log.Info("roster changed", "nodes", len(c.Nodes), "jobs", m.n.Jobs.Len(), "owned", m.owned)
	maps.Copy(owned, m.giving)
	m.n.Inbox.Send(agenda.Owned{Jobs: owned, Shards: shards})
}

// give notes what another node goes first for from now on. That one learns it with its next beat, and this one goes on
// until then: for a moment two nodes ask for a tick, and the claim decides. A node that hands over, or ends, has done
// with it.
func (m *members) give(owned map[*work.Job]bool) {
	now, giving := time.Now(), make(map[*work.Job]bool)
	for j := range m.first {
		if !owned[j] && j.Shards <= 1 {
			giving[j] = true
		}
	}
	if len(giving) > 0 {
		m.given = now.Add(handOver)
	}
	if now.Before(m.given) {
		for j := range m.giving {
			if !owned[j] {
				giving[j] = true
			}
		}
	}
	m.first, m.giving = maps.Clone(owned), giving
	if m.n.Standing.Drain.Load() != nil || m.n.Standing.Leaving.Load() {
		m.giving = nil
	}
}
