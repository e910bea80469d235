package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
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

// heartbeatConfig holds the dependencies of a heartbeat.
type heartbeatConfig struct {
	identity
	ledger       *ledger.Ledger
	roster       *roster.Roster
	lanes        heartbeatLanes
	jobs         *work.Jobs
	announcer    *announcer
	view         *LatestView
	state        *NodeState
	clock        Clock
	slots        *agenda.Slots
	inbox        *agenda.Inbox
	failoverHold time.Duration
	stalled      func() []roster.Stall // the node's runs that have stalled
	log          *slog.Logger

	// Each channel holds one signal.
	beatNow     chan struct{}   // send a heartbeat now
	redisLost   chan<- struct{} // Redis may have lost data
	promoted    chan<- struct{} // the epoch of promotions has changed
	viewChanged chan<- struct{} // the view of the cluster has changed
}

// identity is a node's description of itself.
type identity struct {
	id, name            string
	version, generation string
	labels              map[string]string
	weight              int
	zoneData            string // version of its time zone rules
	started             time.Time
}

// heartbeatLanes are the lanes, as a heartbeat needs them.
type heartbeatLanes interface {
	At(role string, part int, call func() error) error
	Beaten(err error)
	Changes() int
	Err() error
	Held() bool
	Holding() error
	Recheck()
	Seen(members []roster.Member, nodes []sharding.Node)
	Servers() (asserted, restored string)
	Unreachable() bool
}

// heartbeat keeps the node in the roster, reads the other nodes, and passes to the agenda the jobs
// that this node owns.
type heartbeat struct {
	heartbeatConfig

	first        map[*work.Job]bool // the jobs that this node owns, as last assigned
	handingOff   map[*work.Job]bool // jobs that it has lost to another node, and claims until that node has noticed
	handOffUntil time.Time          // until when

	epoch          int64     // the epoch of promotions, as the last heartbeat showed it
	lastBeat       time.Time // when a heartbeat was last answered
	uncertainUntil time.Time // until then, nodes that are missing in the roster may come back
	source         string    // the server and the incarnation that answered the last heartbeat

	unknown, damaged lane.UnknownFormats
	warned           map[string]bool // other nodes with this node's name, by id
	handover         handover
}

func newHeartbeat(c heartbeatConfig) *heartbeat {
	unknown := lane.UnknownFormats{Log: c.log}
	return &heartbeat{heartbeatConfig: c, warned: make(map[string]bool), unknown: unknown, damaged: unknown, handover: handover{over: make(chan struct{}, 1)}}
}

// join adds the node to the roster before it registers or claims anything, so that the other nodes
// see which definitions are alive.
func (h *heartbeat) join(ctx context.Context) error {
	if err := h.announcer.announce(ctx); err != nil {
		return err
	}
	_, err := h.beat(ctx)
	return err
}

// run sends heartbeats until ctx ends. After join, no other role uses h.
func (h *heartbeat) run(ctx context.Context) {
	h.assign()
	h.handover.live = true
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C: // when both are ready, one heartbeat does for both
			wait.Drop(h.beatNow)
			timer.Reset(beatEvery)
		case <-h.beatNow:
			if wait.Drop(timer.C) {
				timer.Reset(beatEvery)
			}
		}
		if h.finished() {
			continue
		}
		changed, err := h.beat(ctx)
		if err != nil {
			if ctx.Err() == nil {
				h.lanes.Beaten(err)
			}
			h.abandonHandover()
			continue
		}
		h.lanes.Beaten(nil)
		if h.reassigns(changed) || !h.handover.on && len(h.handingOff) > 0 && !time.Now().Before(h.handOffUntil) {
			h.assign()
		}
		switch way := &h.handover; {
		case way.on:
			timer.Reset(handOverCheck)
		case way.stopping:
			wait.Signal(way.over)
		}
	}
}

// leave removes the node from the roster, so that the other nodes take over at once.
func (h *heartbeat) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return redisconn.Classify("leave the roster", h.roster.Leave(ctx, h.id))
}

// beat sends a heartbeat and reports whether the view of the cluster has changed.
func (h *heartbeat) beat(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	self, changes := h.self(), h.lanes.Changes()
	view, err := h.roster.Beat(ctx, self)
	if err == nil && view.Unannounced {
		wait.Signal(h.redisLost) // Redis has lost data, or may have
		of := h.announcer.now.Load()
		err = h.roster.Announce(ctx, of.set, of.names)
	}
	if err != nil {
		return false, redisconn.Classify("beat", err)
	}
	h.unknown.Note(view.UnknownFormat, "nodes in the roster")
	h.noteDrain(ctx, view, self.Draining, changes)
	if view.Epoch != h.epoch {
		h.epoch = view.Epoch
		wait.Signal(h.promoted)
	}
	old := h.view.Load()
	nodes := h.keepMissing(old, view)
	next, err := h.readView(ctx, old, nodes)
	if err != nil {
		return false, err
	}
	next.setRevisions(view.Members, old)
	h.lanes.Seen(view.Members, nodes)
	same := old != nil && slices.EqualFunc(old.Nodes, nodes, sameNode) && len(old.Sets) == len(next.Sets) && len(old.known.chunks) == len(next.known.chunks)
	if !same || !maps.Equal(old.standby, next.standby) {
		h.view.set(next)
	}
	if !same {
		wait.Signal(h.viewChanged)
		h.warnSameName(nodes)
	}
	return !same, nil
}

// keepMissing adds nodes that the roster has lost. They have most likely lived through the loss, as
// this node has, and other nodes wait for their reports. The roster drops nodes while no heartbeat
// is answered, and a Redis that was emptied or restarted may have lost any of them. So the view
// does not shrink until all epochs that have begun are open or have lasted for FailoverHold, after
// which no node is waited for, and for FailoverHold from the first answer.
func (h *heartbeat) keepMissing(old *View, view roster.View) []sharding.Node {
	now, nodes := time.Now(), view.Nodes()
	if !h.lastBeat.IsZero() && now.Sub(h.lastBeat) > RosterTTL/2 {
		h.uncertainUntil = now.Add(2 * beatEvery)
	}
	//guard:view-frozen P1 a Redis that has lost its data does not decide which nodes are waited for and which own jobs
	if h.source != "" && view.Source != h.source {
		h.uncertainUntil = now.Add(h.failoverHold)
		h.lanes.Recheck()
	}
	h.lastBeat, h.source = now, view.Source
	if old == nil || !now.Before(h.uncertainUntil) && !h.lanes.Held() {
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

// warnSameName warns, once for each, of other nodes with this node's name. Nodes are distinguished
// by id, but people read names.
func (h *heartbeat) warnSameName(nodes []sharding.Node) {
	for _, n := range nodes {
		if n.Name == h.name && n.ID != h.id && !h.warned[n.ID] {
			h.warned[n.ID] = true
			h.log.Warn("another node has the same name; runs and owners are shown by name, so give each its own", "other", n.ID)
		}
	}
	for id := range h.warned {
		if !slices.ContainsFunc(nodes, func(n sharding.Node) bool { return n.ID == id }) {
			delete(h.warned, id)
		}
	}
}

func sameNode(a, b sharding.Node) bool {
	return a.ID == b.ID && a.Weight == b.Weight && a.Set == b.Set && a.Draining == b.Draining && maps.Equal(a.Labels, b.Labels)
}

// readView makes a view of these nodes. It reads only records new to this node; unreadable records
// are tried again at the next heartbeat.
func (h *heartbeat) readView(ctx context.Context, old *View, nodes []sharding.Node) (c *View, err error) {
	before := h.announcer.now.Load().known()
	if old != nil {
		before = old.known
	}
	c = &View{Nodes: nodes}
	var unread int
	c.Sets, c.known, unread, err = holdings(ctx, h.roster, h.ledger.Partitions(), nodes, before, everything, h.read)
	h.damaged.Note(unread, "lists in the roster of what nodes hold; they may hold anything")
	return c, err
}

// read reads chunks, except for partitions whose masters are unreachable.
func (h *heartbeat) read(ctx context.Context, wanted map[int][]string) (map[string]map[string]string, error) {
	all := make(map[string]map[string]string)
	for _, part := range slices.Sorted(maps.Keys(wanted)) {
		err := h.lanes.At("beat", part, func() error {
			some, err := define.ReadChunks(ctx, h.ledger, map[int][]string{part: wanted[part]})
			maps.Copy(all, some)
			return err
		})
		if err != nil && !errors.Is(err, lane.ErrBreaker) {
			return all, err
		}
	}
	return all, nil
}

func (h *heartbeat) self() roster.Member {
	asserted, restored := h.lanes.Servers()
	state, owned := roster.StateActive, int(h.state.Owned.Load())
	switch {
	case h.state.Stopping.Load() || h.state.Drain.Load() != nil:
		state = roster.StateDraining
	case h.state.Standby.Load():
		state, owned = roster.StateStandby, 0 // it would go first for them, but claims none
	}
	return roster.Member{
		Node: sharding.Node{
			ID: h.id, Name: h.name, Weight: h.weight, Labels: h.labels, Set: h.announcer.now.Load().set, Draining: h.state.Stopping.Load(),
		},
		Version: h.version, Revision: h.jobs.Revision(), Generation: h.generation, State: state, Started: h.started,
		OffsetMS: h.clock.Ahead().Milliseconds(), UnbelievedMS: h.clock.Unbelieved().Milliseconds(), Running: h.slots.Used(), Jobs: h.jobs.Len(), Owned: owned,
		Asserted: asserted, Restored: restored, Trouble: problem(h.lanes.Err()), ZoneData: h.zoneData,
		Refused: h.state.Refused.Load(), Stalled: h.stalled(),
	}
}
