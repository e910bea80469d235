package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// View is the cluster as the last heartbeat showed it. It does not change.
type View struct {
	Nodes   []sharding.Node
	Sets    map[string]*Holding // the nodes' jobs, by the sets in their records
	known   known               // the source of Sets
	built   map[string]string   // by node, the revision of its build
	standby map[string]bool     // nodes on standby, which claim nothing
}

// Holders are the nodes that may run a job.
func (c *View) Holders(j *work.Job) []sharding.Node {
	nodes := make([]sharding.Node, 0, len(c.Nodes))
	for i := range c.Nodes {
		if c.mayRun(&c.Nodes[i], j) {
			nodes = append(nodes, c.Nodes[i])
		}
	}
	return nodes
}

// Knows reports whether a living node that is not on standby holds a job of that name, in any
// definition, or may hold it in a record that this version cannot read.
func (c *View) Knows(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n sharding.Node) bool {
		digest, known := c.Sets[n.Set].Digest(name)
		return !c.standby[n.ID] && (!known || digest != "")
	})
}

// NoNode returns why no living node can run a job in this definition with these labels. "": a node
// can, or may hold the job in a record that this version cannot read. Nodes on standby cannot.
func (c *View) NoNode(name, digest string, labels map[string]string) string {
	var standby, other, unlabelled bool
	for _, n := range c.Nodes {
		switch held, known := c.Sets[n.Set].Digest(name); {
		case known && held == "":
		case c.standby[n.ID]:
			standby = true
		case !known || held == digest && sharding.Matches(labels, n.Labels):
			return ""
		case held == digest:
			unlabelled = true
		default:
			other = true
		}
	}
	switch {
	case unlabelled:
		return "no living node that holds it has its labels " + labelWords(labels)
	case other:
		return "no living node holds the stored definition"
	case standby:
		return "only nodes on standby hold it"
	}
	return "no living node holds it"
}

// labelWords are labels by name: "disk=fast, zone=a".
func labelWords(labels map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+"="+labels[name])
	}
	return strings.Join(words, ", ")
}

// Digests are the definitions in which living nodes that are not on standby hold a job; nil when
// the answer of one of them is not known.
func (c *View) Digests(name string) []string {
	held := []string{}
	for _, n := range c.Nodes {
		switch digest, known := c.Sets[n.Set].Digest(name); {
		case c.standby[n.ID]:
		case !known:
			return nil
		case digest != "" && !slices.Contains(held, digest):
			held = append(held, digest)
		}
	}
	return held
}

// Announced reports whether a node other than self holds this definition of a job and may claim it,
// or may hold it in an unreadable record. Draining nodes do not count, nor do builds of an earlier
// revision than this one; "" is before all.
func (c *View) Announced(name, digest, self, revision string) bool {
	return slices.ContainsFunc(c.Nodes, func(n sharding.Node) bool {
		held, known := c.Sets[n.Set].Digest(name)
		return n.ID != self && !n.Draining && (held == digest || !known) && c.built[n.ID] >= revision
	})
}

// setRevisions notes the members' revisions and which of them are on standby. For nodes that are kept
// without being in the roster, it takes them from old.
func (c *View) setRevisions(members []roster.Member, old *View) {
	c.built, c.standby = make(map[string]string, len(c.Nodes)), make(map[string]bool)
	for _, n := range c.Nodes {
		if old != nil {
			c.built[n.ID] = old.built[n.ID]
			if old.standby[n.ID] {
				c.standby[n.ID] = true
			}
		}
	}
	for _, m := range members {
		c.built[m.ID] = m.Revision
		if delete(c.standby, m.ID); m.State == roster.StateStandby {
			c.standby[m.ID] = true
		}
	}
}

// ReadRoster reads the living nodes and their jobs from the needed chunks, for callers that cannot
// wait for a heartbeat or are no node. It does not read chunks again that last has, which may be nil. unclear counts records of nodes that this version cannot read.
func ReadRoster(ctx context.Context, l *ledger.Ledger, of *roster.Roster, last *View, needs Need) (c *View, members []roster.Member, unclear int, err error) {
	view, err := of.Look(ctx)
	if err != nil {
		return nil, nil, 0, redisconn.Classify("read the roster", err)
	}
	c = &View{}
	for _, m := range view.Members {
		if m.State != roster.StateGone {
			c.Nodes, members = append(c.Nodes, m.Node), append(members, m)
		}
	}
	c.setRevisions(members, nil)
	var old known
	if last != nil {
		old = last.known
	}
	c.Sets, c.known, _, err = holdings(ctx, of, l.Partitions(), c.Nodes, old, needs, func(ctx context.Context, digests map[int][]string) (map[string]map[string]string, error) {
		return define.ReadChunks(ctx, l, digests)
	})
	if err != nil && !errors.As(err, new(*ledger.UnreachableError)) {
		return nil, nil, 0, err
	}
	return c, members, view.UnknownFormat, nil
}

// Need reports whether a chunk is needed. Which nodes hold the jobs of other chunks is then unknown.
type Need func(c define.Chunk) bool

// PartsNeeded needs all chunks of some partitions.
func PartsNeeded(parts ...int) Need {
	return func(c define.Chunk) bool { return slices.Contains(parts, c.Part) }
}

// Differing needs the chunks that are not the same in all sets of the view.
func (c *View) Differing() Need {
	same := make(map[string]int) // name and digest of a chunk: how many sets have it
	for _, set := range c.known.sets {
		for name, chunk := range set {
			same[name+" "+chunk]++
		}
	}
	differ := make(map[string]bool)
	for at, n := range same {
		if n < len(c.known.sets) {
			name, _, _ := strings.Cut(at, " ")
			differ[name] = true
		}
	}
	return func(c define.Chunk) bool { return differ[refOf(c)] }
}

// JobsNeeded needs the chunks of some jobs, each of which has at most one in a set.
func JobsNeeded(l *ledger.Ledger, names []string) Need {
	parts := make(map[int][]string)
	for _, name := range names {
		parts[l.Partition(name)] = append(parts[l.Partition(name)], name)
	}
	return func(c define.Chunk) bool {
		return slices.ContainsFunc(parts[c.Part], func(name string) bool { return define.Place(name, c.Of) == c.Place })
	}
}

// Active is the view without the nodes that are on standby.
func (c *View) Active(members []roster.Member) *View {
	some := &View{Sets: c.Sets}
	for _, m := range members {
		if m.State != roster.StateStandby {
			some.Nodes = append(some.Nodes, m.Node)
		}
	}
	return some
}

// LatestView is the cluster at the last heartbeat.
type LatestView struct {
	last  atomic.Pointer[View]
	owned atomic.Pointer[map[*work.Job]bool] // the jobs that this node owns
}

// Load returns the view; nil before the first heartbeat.
func (v *LatestView) Load() *View { return v.last.Load() }

func (v *LatestView) set(c *View) { v.last.Store(c) }

// Living returns the nodes; none before the first heartbeat.
func (v *LatestView) Living() []sharding.Node {
	if c := v.Load(); c != nil {
		return c.Nodes
	}
	return nil
}

// NoNode is View.NoNode of the latest view.
func (v *LatestView) NoNode(job, digest string, labels map[string]string) string {
	return v.Load().NoNode(job, digest, labels)
}

// Digests is View.Digests of the latest view.
func (v *LatestView) Digests(job string) []string { return v.Load().Digests(job) }

// Owns reports whether this node owns a job, or a shard of it.
func (v *LatestView) Owns(j *work.Job) bool {
	owned := v.owned.Load()
	return owned != nil && (*owned)[j]
}
