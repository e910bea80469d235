package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

const (
	// beatEvery is how often a node renews its place in the roster.
	beatEvery = time.Second
	// rosterTTL is how long a node that vanished stays in the roster; its late ticks are taken by
	// the sweep long before that.
	rosterTTL = 5 * time.Second
)

// members keeps the node in the roster, learns who else is there, and tells the engine for which
// jobs this node goes first.
type members struct {
	n     *Node
	set   string            // digest of defs
	defs  map[string]string // job -> digest of its definition
	start time.Time
	owned int

	first  map[*job]bool // for which this node goes first, as last assigned
	giving map[*job]bool // for which it went first before, and goes on to until the others have surely heard
	given  time.Time     // when that is

	epoch  int64     // of promotions, as the last beat showed it
	beaten time.Time // when a beat was last answered
	doubt  time.Time // until then, who is missing from the roster may be about to beat again

	strange, damaged strangers
	warned           map[string]bool // nodes with this node's name, by id
	handing          handing
}

func newMembers(n *Node) *members {
	m := &members{n: n, warned: make(map[string]bool), strange: strangers{log: n.log}, damaged: strangers{log: n.log}, handing: handing{over: make(chan struct{}, 1)}, defs: make(map[string]string, len(n.jobs)), start: n.cfg.Wall()}
	for _, j := range n.jobs {
		m.defs[j.Name] = j.digest
	}
	m.set = sharding.SetDigest(m.defs)
	return m
}

// join enters the roster before anything is registered or claimed, so that the others know which
// definitions live.
func (m *members) join(ctx context.Context) error {
	if err := m.n.roster.Announce(ctx, m.set, m.defs); err != nil {
		return m.n.explain("announce the node's jobs", err)
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
			drop(m.n.beatNow)
			timer.Reset(beatEvery)
		case <-m.n.beatNow:
			if drop(timer.C) {
				timer.Reset(beatEvery)
			}
		}
		if m.ends() {
			continue
		}
		changed, err := m.beat(ctx)
		if err != nil {
			if ctx.Err() == nil {
				m.n.quiet.fail(roleBeat, err, home)
			}
			m.unheard()
			continue
		}
		m.n.quiet.ok(roleBeat, home)
		if !m.n.quiet.apart { // what a Cluster's other masters take is not known by this one, see sweep.writtenFor
			m.n.clock.wrote()
		}
		if m.reassigns(changed) || !m.handing.on && len(m.giving) > 0 && !time.Now().Before(m.given) {
			m.assign()
		}
		switch h := &m.handing; {
		case h.on:
			timer.Reset(handLook)
		case h.leaving:
			signal(h.over)
		}
	}
}

// leave takes the node out of the roster, so that the others take over at once.
func (m *members) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.n.explain("leave the roster", m.n.roster.Leave(ctx, m.n.id))
}

// beat renews the node's record and says whether the crowd changed.
func (m *members) beat(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	self := m.self()
	view, err := m.n.roster.Beat(ctx, self)
	if err == nil && view.Unannounced {
		m.n.registrar.wiped()
		err = m.n.roster.Announce(ctx, m.set, m.defs)
	}
	if err != nil {
		return false, m.n.explain("beat", err)
	}
	m.strange.note(view.Foreign, "nodes in the roster")
	m.heed(view, self.Draining)
	if view.Epoch != m.epoch {
		m.epoch = view.Epoch
		m.n.registrar.promotion()
	}
	old := m.n.crowd.Load()
	nodes := m.kept(old, view.Nodes())
	sets, err := m.sets(ctx, old, nodes)
	if err != nil {
		return false, err
	}
	next := &crowd{nodes: nodes, sets: sets}
	next.builds(view.Members, old)
	m.n.failover.seen(view.Members, nodes)
	same := old != nil && slices.EqualFunc(old.nodes, nodes, sameNode) && len(old.sets) == len(sets)
	if !same || !maps.Equal(old.standby, next.standby) {
		m.n.crowd.Store(next)
	}
	if !same {
		m.n.registrar.stir()
		m.namesakes(nodes)
	}
	return !same, nil
}

// kept adds to the nodes in the roster those that it dropped while no beat was answered: they have most likely lived
// through that as this node has. Else the first to be answered would go first for everything.
func (m *members) kept(old *crowd, nodes []sharding.Node) []sharding.Node {
	now := time.Now()
	if !m.beaten.IsZero() && now.Sub(m.beaten) > rosterTTL/2 {
		m.doubt = now.Add(2 * beatEvery)
	}
	m.beaten = now
	if old == nil || !now.Before(m.doubt) {
		return nodes
	}
	for _, was := range old.nodes {
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
		if n.Name == m.n.cfg.Name && n.ID != m.n.id && !m.warned[n.ID] {
			m.warned[n.ID] = true
			m.n.log.Warn("another node has the same name; runs and owners are shown by name, so give each its own", "other", n.ID)
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

// sets reads the sets of definitions that are new to this node.
func (m *members) sets(ctx context.Context, old *crowd, nodes []sharding.Node) (map[string]map[string]string, error) {
	sets := map[string]map[string]string{m.set: m.defs}
	var missing []string
	for _, n := range nodes {
		if sets[n.Set] != nil || slices.Contains(missing, n.Set) {
			continue
		}
		if old != nil && old.sets[n.Set] != nil {
			sets[n.Set] = old.sets[n.Set]
			continue
		}
		missing = append(missing, n.Set)
	}
	if len(missing) == 0 {
		return sets, nil
	}
	read, err := m.n.roster.Sets(ctx, missing)
	if err != nil && !errors.Is(err, sharding.ErrDamaged) {
		return nil, m.n.explain("read the sets of definitions", err)
	}
	m.damaged.note(len(missing)-len(read), "sets of definitions in the roster; their nodes count as holding nothing")
	maps.Copy(sets, read)
	return sets, nil
}

func (m *members) self() sharding.Member {
	n := m.n
	told, placed := n.failover.servers()
	state, owned := sharding.StateActive, m.owned
	switch {
	case n.leaving.Load() || n.cordon.Load() != nil:
		state = sharding.StateDraining
	case n.registrar.idle.Load():
		state, owned = sharding.StateStandby, 0 // it would go first for them, and claims none
	}
	return sharding.Member{
		Node: sharding.Node{
			ID: n.id, Name: n.cfg.Name, Weight: n.cfg.Weight, Labels: n.cfg.Labels, Set: m.set, Draining: n.leaving.Load(),
		},
		Version: n.cfg.Version, Revision: n.cfg.Revision, Generation: n.cfg.Generation, State: state, Started: m.start,
		OffsetMS: n.clock.ahead().Milliseconds(), Running: n.slots.used(), Jobs: len(n.jobs), Owned: owned,
		Told: ledger.Fingerprint(told), Placed: ledger.Fingerprint(placed), Trouble: n.trouble(),
	}
}

// assign works out for which jobs this node goes first and tells the engine.
func (m *members) assign() {
	c := m.n.crowd.Load()
	owned, shards := c.owned(m.n.jobs, m.n.id), make(map[*job][]int)
	for _, j := range m.n.jobs {
		if j.Shards <= 1 {
			continue
		}
		if mine := m.n.shardsFirst(j, c.holders(j)); len(mine) > 0 {
			owned[j], shards[j] = true, mine
		}
	}
	m.owned = len(owned)
	m.give(owned)
	m.n.log.Info("roster changed", "nodes", len(c.nodes), "jobs", len(m.n.jobs), "owned", m.owned)
	maps.Copy(owned, m.giving)
	m.n.engine.do(func() { m.n.engine.own(owned, shards) })
}

// give notes what another node goes first for from now on. That one learns it with its next beat, and this one goes on
// until then: for a moment two nodes ask for a tick, and the claim decides. A node that hands over, or ends, has done
// with it.
func (m *members) give(owned map[*job]bool) {
	now, giving := time.Now(), make(map[*job]bool)
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
	if m.n.cordon.Load() != nil || m.n.leaving.Load() {
		m.giving = nil
	}
}
