package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// Where as many generations stand by as there may be, one of them can be promoted all the same, and the way back has its place.
func TestPromoteWhereAllPlacesAreTaken(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("old", scheduler.Config{Partitions: 1}, eachSecond("job", s))
		time.Sleep(3 * time.Second)
		for i := range ledger.BesideMax {
			c.start(fmt.Sprint("n", i), scheduler.Config{Partitions: 1, Generation: fmt.Sprint("g", i)}, eachSecond("job", s))
		}
		time.Sleep(5 * time.Second)
		for _, generation := range []string{"g1", "g2", ""} {
			if p := c.promote(generation, scheduler.PromoteOptions{}); p.Switched.Count != 1 {
				t.Errorf("%q: %+v", generation, p)
			}
			for _, g := range must[[]scheduler.GenerationView](t)(c.inspector().Generations(t.Context())) {
				if active := g.Name == generation; active != (g.State == scheduler.GenerationActive) || active != (g.Running == 1) {
					t.Errorf("after the promotion of %q: %+v", generation, g)
				}
			}
			time.Sleep(3 * time.Second)
		}
	})
}

// Where eight generations stand by that hold one job, a ninth has no place there, and says so. Its other jobs are kept where there is room,
// so that they can be promoted, and one that was promoted runs, also on a node that begins later.
func TestNinthGenerationWhereThereIsRoom(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		list := many(20, s)
		c.start("old", scheduler.Config{}, list...)
		time.Sleep(3 * time.Second)
		for i := range ledger.BesideMax {
			c.start(fmt.Sprint("n", i), scheduler.Config{Generation: fmt.Sprint("g", i)}, list[0])
		}
		time.Sleep(5 * time.Second)
		c.start("neo", scheduler.Config{Generation: "neo"}, list...)
		time.Sleep(20 * time.Second)
		var waits []string
		for _, g := range must[[]scheduler.GenerationView](t)(c.inspector().Generations(t.Context())) {
			if g.Name == "neo" {
				waits = g.Unsettled.First
			}
		}
		if !slices.Equal(waits, []string{"job-00", "job-05", "job-16"}) {
			t.Errorf("not kept beside are %v, want those of the partition in which there is no room", waits)
		}
		if c.logs.count("definitions of 8 other generations are kept beside") == 0 {
			t.Error("nobody said that a partition has no room")
		}
		c.promote("neo", scheduler.PromoteOptions{Pattern: "job-1[0-5]"})
		c.start("neo2", scheduler.Config{Generation: "neo"}, list...)
		time.Sleep(10 * time.Second)
		last := make(map[string]string)
		for _, r := range s.all() {
			last[r.job] = r.node
		}
		for job, node := range last {
			if neo := strings.HasPrefix(node, "neo"); neo != (job >= "job-10" && job <= "job-15") {
				t.Errorf("%s ran last on %s", job, node)
			}
		}
		s.check(t)
	})
}
