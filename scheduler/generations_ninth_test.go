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

// Where eight generations stand by that hold one job, a ninth has no place there, and says so. Its other jobs are kept where there is room,
// so that they can be promoted, and one that was promoted runs, also on a node that begins later.
func TestNinthGenerationWhereThereIsRoom(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list, _ := secondly(20, s)
		c.start("old", scheduler.Config{}, list...)
		time.Sleep(3 * time.Second)
		for i := range ledger.BesideMax {
			c.start(fmt.Sprint("n", i), scheduler.Config{Generation: fmt.Sprint("g", i)}, list[0])
		}
		time.Sleep(5 * time.Second)
		c.start("neo", scheduler.Config{Generation: "neo"}, list...)
		time.Sleep(time.Minute)
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
