package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/roster"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// Crowd is the cluster as the last beat showed it. It is never changed after it was made.
type Crowd struct {
	Nodes   []sharding.Node
	Sets    map[string]map[string]string // set -> job -> digest of its definition
	built   map[string]string            // node -> revision of its build
	standby map[string]bool              // nodes on standby, which claim nothing at all
}

// Holders are the nodes that may run a job.
func (c *Crowd) Holders(j *work.Job) []sharding.Node {
	nodes := make([]sharding.Node, 0, len(c.Nodes))
	for i := range c.Nodes {
		if c.mayRun(&c.Nodes[i], j) {
			nodes = append(nodes, c.Nodes[i])
		}
	}
	return nodes
}

// Knows says whether any living node that is not on standby holds a job of that name, in whatever definition, or may: what some of
// them hold may be unreadable for this version.
func (c *Crowd) Knows(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n sharding.Node) bool {
		return !c.standby[n.ID] && (c.Sets[n.Set] == nil || c.Sets[n.Set][name] != "")
	})
}

// Runs says whether any living node that is not on standby holds a job in this definition and has these labels, or may: what some of
// them hold may be unreadable for this version.
func (c *Crowd) Runs(name, digest string, labels map[string]string) bool {
	return slices.ContainsFunc(c.Nodes, func(n sharding.Node) bool {
		set := c.Sets[n.Set]
		return !c.standby[n.ID] && (set == nil || set[name] == digest && sharding.Matches(labels, n.Labels))
	})
}

// Digests are the definitions in which living nodes that are not on standby hold a job; nil when what one of them holds is not known.
func (c *Crowd) Digests(name string) []string {
	held := []string{}
	for _, n := range c.Nodes {
		switch set := c.Sets[n.Set]; {
		case c.standby[n.ID]:
		case set == nil:
			return nil
		case set[name] != "" && !slices.Contains(held, set[name]):
			held = append(held, set[name])
		}
	}
	return held
}

// Announced says whether a node other than self holds this definition of a job and may claim it: one that drains does not
// any more. Those of builds before this revision do not count, "" is before all.
func (c *Crowd) Announced(name, digest, self, revision string) bool {
	return slices.ContainsFunc(c.Nodes, func(n sharding.Node) bool {
		return n.ID != self && !n.Draining && c.Sets[n.Set][name] == digest && c.built[n.ID] >= revision
	})
}

// builds notes the revisions of members and which of them are on standby; of those nodes of old that are still counted without being
// in the roster, what was known.
func (c *Crowd) builds(members []roster.Member, old *Crowd) {
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

// LookAround reads the living nodes and what they hold from the roster, for whoever cannot wait for a beat, or is no node.
// unclear counts records that this version cannot read.
func LookAround(ctx context.Context, of *roster.Roster) (c *Crowd, members []roster.Member, unclear int, err error) {
	view, err := of.Look(ctx)
	if err != nil {
		return nil, nil, 0, redisconn.Explain("read the roster", err)
	}
	c = &Crowd{}
	var digests []string
	for _, m := range view.Members {
		if m.State != roster.StateGone {
			c.Nodes, digests, members = append(c.Nodes, m.Node), append(digests, m.Set), append(members, m)
		}
	}
	c.builds(members, nil)
	if c.Sets, err = of.Sets(ctx, digests); err != nil && !errors.Is(err, roster.ErrDamaged) {
		return nil, nil, 0, redisconn.Explain("read the roster", err)
	}
	return c, members, view.Foreign, nil
}

// Awake is the crowd without the nodes that are on standby.
func (c *Crowd) Awake(members []roster.Member) (some *Crowd, unclear int) {
	some = &Crowd{Sets: c.Sets}
	for _, m := range members {
		if m.State == roster.StateStandby {
			continue
		}
		if some.Nodes = append(some.Nodes, m.Node); c.Sets[m.Set] == nil {
			unclear++
		}
	}
	return some, unclear
}
