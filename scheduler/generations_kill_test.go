package scheduler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A promotion that is killed before or after any of its commands, and repeated, ends as one that was not; what was still
// under way of the first changes nothing then. Promoting back instead leaves everything the old generation's again.
func TestPromoteKilledAnywhere(t *testing.T) {
	frozen(t, func(c *cluster, server *redistest.Embedded, back func()) {
		var whole, both killer
		if _, err := c.promoteKilled(&whole, "two", scheduler.PromoteOptions{}); err != nil {
			t.Fatal(err)
		}
		want := ledgerOf(server)
		for told, is := range map[string]bool{":followers changes turns\n": true, ":followers stays ": false} {
			if strings.Contains(want, told) != is {
				c.t.Errorf("%q is there: %v, in %s", told, !is, want)
			}
		}
		again, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{})
		if err != nil || !again.Nothing() || ledgerOf(server) != want {
			t.Errorf("a second promotion did something: %+v, %v", again, err)
		}
		if _, err := c.promoteKilled(&both, "one", scheduler.PromoteOptions{}); err != nil {
			t.Fatal(err)
		}
		back()
		whole = killer{}
		if _, err := c.promoteKilled(&whole, "two", scheduler.PromoteOptions{}); err != nil { // now Redis knows the scripts
			t.Fatal(err)
		}
		t.Logf("%d commands to promote, %d to promote back", whole.count, both.count)
		resumed := 0
		for at := 1; at <= whole.count; at++ {
			for _, after := range []bool{false, true} {
				if c.killedAt(server, back, at, after, want) {
					resumed++
				}
			}
		}
		if resumed < whole.count {
			t.Errorf("%d of %d promotions were resumed: the kills came too early or too late", resumed, 2*whole.count)
		}
	})
}

// killedAt kills a promotion at a command, and repeats it; then, from the same beginning, kills it and promotes back. It
// says whether the repeated one was resumed.
func (c *cluster) killedAt(server *redistest.Embedded, back func(), at int, after bool, want string) bool {
	back()
	if _, err := c.promoteKilled(&killer{at: at, after: after}, "two", scheduler.PromoteOptions{}); err == nil {
		c.t.Errorf("killed at %d, after %v, and nothing was said", at, after)
	}
	again, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{})
	if err != nil {
		c.t.Errorf("killed at %d, after %v, and repeated: %v", at, after, err)
	}
	if got := ledgerOf(server); got != want {
		c.t.Errorf("killed at %d, after %v, and repeated: %s", at, after, differing(want, got))
	}
	back()
	first := &killer{at: at, after: after}
	_, _ = c.promoteKilled(first, "two", scheduler.PromoteOptions{})
	p, err := c.promoteKilled(&killer{}, "one", scheduler.PromoteOptions{})
	if err != nil {
		c.t.Errorf("killed at %d, after %v, and promoted back: %v", at, after, err)
	}
	c.allOf("one", p)
	was := ledgerOf(server)
	c.replay(first.sent)
	if got := ledgerOf(server); got != was {
		c.t.Errorf("killed at %d, after %v: late commands of it changed: %s", at, after, differing(was, got))
	}
	return again.Resumed
}

// allOf checks that all jobs which the generation ever had are its.
func (c *cluster) allOf(generation string, p scheduler.Promotion) {
	c.t.Helper()
	c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
		all, err := i.Jobs(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, j := range all {
			if j.Generation != generation || !j.Orphan != (j.Owner != "") || j.Orphan != (j.Name == "comes") {
				c.t.Errorf("after %+v: %s is of generation %s, owner %q", p, j.Name, j.Generation, j.Owner)
			}
		}
		if g, err := i.Generations(ctx); err != nil || g[0].State != scheduler.GenerationActive || g[1].State != scheduler.GenerationStandby {
			c.t.Errorf("generations %+v, %v", g, err)
		}
	})
}
