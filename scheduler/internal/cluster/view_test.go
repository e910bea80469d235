package cluster

import (
	"testing"

	"github.com/escapement/escapement/sharding"
)

// The nearest cause decides why no living node can run a job.
func TestNoNode(t *testing.T) {
	set := func(digest string) *Holding {
		return &Holding{places: [][]place{{{chunk: "c", jobs: map[string]string{"a": digest}}}}}
	}
	c := &View{
		Nodes: []sharding.Node{{ID: "none", Set: "none"}, {ID: "waits", Set: "new"}, {ID: "old", Set: "old"}, {ID: "slow", Set: "new"}},
		Sets:  map[string]*Holding{"none": set(""), "new": set("new"), "old": set("old")}, standby: map[string]bool{"waits": true},
	}
	labels := map[string]string{"zone": "a", "disk": "fast"}
	for _, want := range []string{
		"no living node that holds it has its labels disk=fast, zone=a", "no living node holds the stored definition", "only nodes on standby hold it", "no living node holds it",
	} {
		if why := c.NoNode("a", "new", labels); why != want {
			t.Errorf("%d nodes: %q; want %q", len(c.Nodes), why, want)
		}
		c.Nodes = c.Nodes[:len(c.Nodes)-1]
	}
	for name, n := range map[string]sharding.Node{"can run it": {ID: "fast", Set: "new", Labels: labels}, "may run it": {ID: "x", Set: "unread"}} {
		c.Nodes = []sharding.Node{{ID: "old", Set: "old"}, n}
		if why := c.NoNode("a", "new", labels); why != "" {
			t.Errorf("a node %s: %s", name, why)
		}
	}
}
