package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/sharding"
)

// crowd is the cluster as the last beat showed it. It is never changed after it was made.
type crowd struct {
	nodes   []sharding.Node
	sets    map[string]map[string]string // set -> job -> digest of its definition
	built   map[string]string            // node -> revision of its build
	standby map[string]bool              // nodes on standby, which claim nothing at all
}

// holders are the nodes that may run a job.
func (c *crowd) holders(j *job) []sharding.Node {
	nodes := make([]sharding.Node, 0, len(c.nodes))
	for i := range c.nodes {
		if c.mayRun(&c.nodes[i], j) {
			nodes = append(nodes, c.nodes[i])
		}
	}
	return nodes
}

// knows says whether any living node that is not on standby holds a job of that name, in whatever definition, or may: what some of
// them hold may be unreadable for this version.
func (c *crowd) knows(name string) bool {
	return slices.ContainsFunc(c.nodes, func(n sharding.Node) bool {
		return !c.standby[n.ID] && (c.sets[n.Set] == nil || c.sets[n.Set][name] != "")
	})
}

// digests are the definitions in which living nodes that are not on standby hold a job; nil when what one of them holds is not known.
func (c *crowd) digests(name string) []string {
	held := []string{}
	for _, n := range c.nodes {
		switch set := c.sets[n.Set]; {
		case c.standby[n.ID]:
		case set == nil:
			return nil
		case set[name] != "" && !slices.Contains(held, set[name]):
			held = append(held, set[name])
		}
	}
	return held
}

// announced says whether a node other than self holds this definition of a job and may claim it: one that drains does not
// any more. Those of builds before this revision do not count, "" is before all.
func (c *crowd) announced(name, digest, self, revision string) bool {
	return slices.ContainsFunc(c.nodes, func(n sharding.Node) bool {
		return n.ID != self && !n.Draining && c.sets[n.Set][name] == digest && c.built[n.ID] >= revision
	})
}

// builds notes the revisions of members and which of them are on standby; of those nodes of old that are still counted without being
// in the roster, what was known.
func (c *crowd) builds(members []sharding.Member, old *crowd) {
	c.built, c.standby = make(map[string]string, len(c.nodes)), make(map[string]bool)
	for _, n := range c.nodes {
		if old != nil {
			c.built[n.ID] = old.built[n.ID]
			if old.standby[n.ID] {
				c.standby[n.ID] = true
			}
		}
	}
	for _, m := range members {
		c.built[m.ID] = m.Revision
		if delete(c.standby, m.ID); m.State == sharding.StateStandby {
			c.standby[m.ID] = true
		}
	}
}

// lookAround reads the living nodes and what they hold from the roster, for whoever cannot wait for a beat, or is no node.
// unclear counts records that this version cannot read.
func lookAround(ctx context.Context, roster *sharding.Roster) (c *crowd, members []sharding.Member, unclear int, err error) {
	view, err := roster.Look(ctx)
	if err != nil {
		return nil, nil, 0, redisconn.Explain("read the roster", err)
	}
	c = &crowd{}
	var digests []string
	for _, m := range view.Members {
		if m.State != sharding.StateGone {
			c.nodes, digests, members = append(c.nodes, m.Node), append(digests, m.Set), append(members, m)
		}
	}
	c.builds(members, nil)
	if c.sets, err = roster.Sets(ctx, digests); err != nil && !errors.Is(err, sharding.ErrDamaged) {
		return nil, nil, 0, redisconn.Explain("read the roster", err)
	}
	return c, members, view.Foreign, nil
}

// awake is the crowd without the nodes that are on standby.
func (c *crowd) awake(members []sharding.Member) (some *crowd, unclear int) {
	some = &crowd{sets: c.sets}
	for _, m := range members {
		if m.State == sharding.StateStandby {
			continue
		}
		if some.nodes = append(some.nodes, m.Node); c.sets[m.Set] == nil {
			unclear++
		}
	}
	return some, unclear
}
