package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// Where as many generations stand by as there may be, one of them can be promoted all the same, and the way back has its place. It
// was refused half way, when the other one was the active generation no more and had all the jobs.
func TestPromoteWhereAllPlacesAreTaken(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
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
