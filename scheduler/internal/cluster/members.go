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
	// beatEvery is how often a node sends a heartbeat to the roster.
	beatEvery = time.Second
	// RosterTTL is how long a node that has died stays in the roster. Sweeps take its late ticks
	// long before that.
	RosterTTL = 5 * time.Second
)

// members keeps the node in the roster, learns which other nodes there are, and tells the agenda
// for which jobs this node goes first.
type members struct {
	n     *Cluster
	start time.Time

	first        map[*work.Job]bool // the jobs for which this node goes first, as last assigned
	handingOff   map[*work.Job]bool // jobs that it has lost to another node, and still claims until that one knows
	handOffUntil time.Time          // until when

	epoch          int64     // the epoch of promotions, as the last heartbeat showed it
	lastBeat       time.Time // when a heartbeat was last answered
	uncertainUntil time.Time // until then, nodes that are missing in the roster may come back
	source         string    // the server and the incarnation that answered the last heartbeat

	unknown, damaged lane.UnknownFormats
	warned           map[string]bool // other nodes with this node's name, by id
	handover         handover
}

func newMembers(n *Cluster) *members {
	m := &members{n: n, warned: make(map[string]bool), unknown: lane.UnknownFormats{Log: n.Log}, damaged: lane.UnknownFormats{Log: n.Log}, handover: handover{over: make(chan struct{}, 1)}, start: n.Wall()}
	return m
}

// join adds the node to the roster before it registers or claims anything, so that the others know
// which definitions are alive.
func (m *members) join(ctx context.Context) error {
	if err := m.n.announcer.announce(ctx); err != nil {
		return err
	}
	_, err := m.beat(ctx)
	return err
}

// run sends heartbeats until ctx ends. After join, no other role uses m.
func (m *members) run(ctx context.Context) {
	m.assign()
	m.handover.live = true
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C: // when both are ready, one heartbeat does for both
			wait.Drop(m.n.Beat)
			timer.Reset(beatEvery)
		case <-m.n.Beat:
			if wait.Drop(timer.C) {
				timer.Reset(beatEvery)
			}
		}
		if m.finished() {
			continue
		}
		changed, err := m.beat(ctx)
		if err != nil {
			if ctx.Err() == nil {
				m.n.Lanes.Beaten(err)
			}
			m.abandonHandover()
			continue
		}
		m.n.Lanes.Beaten(nil)
		if m.reassigns(changed) || !m.handover.on && len(m.handingOff) > 0 && !time.Now().Before(m.handOffUntil) {
			m.assign()
		}
		switch h := &m.handover; {
		case h.on:
			timer.Reset(handOverCheck)
		case h.stopping:
			wait.Signal(h.over)
		}
	}
}

// leave removes the node from the roster, so that the others take over at once.
func (m *members) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return redisconn.Classify("leave the roster", m.n.Roster.Leave(ctx, m.n.ID))
}

// beat sends a heartbeat and reports whether the view of the cluster has changed.
func (m *members) beat(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	self, changes := m.self(), m.n.Lanes.Changes()
	view, err := m.n.Roster.Beat(ctx, self)
	if err == nil && view.Unannounced {
		wait.Signal(m.n.Lost) // Redis has lost data, or may have
		of := m.n.announcer.now.Load()
		err = m.n.Roster.Announce(ctx, of.set, of.names)
	}
	if err != nil {
		return false, redisconn.Classify("beat", err)
	}
	m.unknown.Note(view.Foreign, "nodes in the roster")
	m.noteDrain(ctx, view, self.Draining, changes)
	if view.Epoch != m.epoch {
		m.epoch = view.Epoch
		wait.Signal(m.n.registrar.epoch)
	}
	old := m.n.View.Load()
	nodes := m.keepMissing(old, view)
	next, err := m.readView(ctx, old, nodes)
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
		wait.Signal(m.n.registrar.viewChanged)
		m.warnSameName(nodes)
	}
	return !same, nil
}

// keepMissing adds nodes that the roster has lost. They have most likely lived through that, as this node has, and others wait for
// their reports. The roster drops nodes while no heartbeat is answered. A Redis that was emptied or restarted may have lost any of
// them; so the view does not shrink until all epochs that have begun are open or have lasted for FailoverHold, after which nobody is waited
// for, and for FailoverHold from the first answer.
func (m *members) keepMissing(old *View, view roster.View) []sharding.Node {
	now, nodes := time.Now(), view.Nodes()
	if !m.lastBeat.IsZero() && now.Sub(m.lastBeat) > RosterTTL/2 {
		m.uncertainUntil = now.Add(2 * beatEvery)
	}
	//guard:view-frozen P1 whom a node waits for and who goes first is not asked of a Redis that has lost its data
	if m.source != "" && view.Source != m.source {
		m.uncertainUntil = now.Add(m.n.FailoverHold)
		m.n.Lanes.Recheck()
	}
	m.lastBeat, m.source = now, view.Source
	if old == nil || !now.Before(m.uncertainUntil) && !m.n.Lanes.Held() {
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

// warnSameName warns, once for each, of other nodes with this node's name. Nodes are told apart by
// id, but people read names.
func (m *members) warnSameName(nodes []sharding.Node) {
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

// readView makes a view of these nodes. It reads what is new to this node; what cannot be read is
// tried again at the next heartbeat.
func (m *members) readView(ctx context.Context, old *View, nodes []sharding.Node) (c *View, err error) {
	before := m.n.announcer.now.Load().known()
	if old != nil {
		before = old.known
	}
	c = &View{Nodes: nodes}
	var unread int
	c.Sets, c.known, unread, err = holdings(ctx, m.n.Roster, m.n.Ledger.Partitions(), nodes, before, everything, m.read)
	m.damaged.Note(unread, "lists in the roster of what nodes hold; they may hold anything")
	return c, err
}

// read reads chunks, except for partitions whose masters are unreachable.
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
	asserted, restored := n.Lanes.Servers()
	state, owned := roster.StateActive, int(n.State.Owned.Load())
	switch {
	case n.State.Stopping.Load() || n.State.Drain.Load() != nil:
		state = roster.StateDraining
	case n.registrar.allStandby.Load():
		state, owned = roster.StateStandby, 0 // it would go first for them, but claims none
	}
	return roster.Member{
		Node: sharding.Node{
			ID: n.ID, Name: n.Name, Weight: n.Weight, Labels: n.Labels, Set: n.announcer.now.Load().set, Draining: n.State.Stopping.Load(),
		},
		Version: n.Version, Revision: n.Jobs.Revision(), Generation: n.Generation, State: state, Started: m.start,
		OffsetMS: n.Clock.Ahead().Milliseconds(), UnbelievedMS: n.Clock.Unbelieved().Milliseconds(), Running: n.Slots.Used(), Jobs: n.Jobs.Len(), Owned: owned,
		Asserted: asserted, Restored: restored, Trouble: n.problem(), ZoneData: n.ZoneData,
		Refused: n.State.Refused.Load(), Stalled: n.Stalled(),
	}
}

// assign determines for which jobs this node goes first, and tells the agenda.
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
	goesFirst := len(owned)
	m.n.State.Owned.Store(int64(goesFirst))
	m.handOff(owned)
	m.n.Log.Info("roster changed", "nodes", len(c.Nodes), "jobs", m.n.Jobs.Len(), "owned", goesFirst)
	maps.Copy(owned, m.handingOff)
	m.n.View.owned.Store(&owned)
	m.n.Inbox.Send(agenda.Owned{Jobs: owned, Shards: shards})
}

// handOff notes the jobs for which another node goes first from now on. That node learns it with
// its next heartbeat; until then this node goes on claiming them. For a moment two nodes claim a
// tick, and the ledger decides. A node that is drained or stops does not do so.
func (m *members) handOff(owned map[*work.Job]bool) {
	now, giving := time.Now(), make(map[*work.Job]bool)
	for j := range m.first {
		if !owned[j] && j.Shards <= 1 {
			giving[j] = true
		}
	}
	if len(giving) > 0 {
		m.handOffUntil = now.Add(handOver)
	}
	if now.Before(m.handOffUntil) {
		for j := range m.handingOff {
			if !owned[j] {
				giving[j] = true
			}
		}
	}
	m.first, m.handingOff = maps.Clone(owned), giving
	if m.n.State.Drain.Load() != nil || m.n.State.Stopping.Load() {
		m.handingOff = nil
	}
}
