//go:build !race

package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// An old build that goes on in a deploy, or is started again in the middle of it, changes nothing back, whatever its revision
// says beside the newer one's: nobody's tick is superseded, for both have the same schedule.
func TestOlderBuildsChangeNothingBack(t *testing.T) {
	for _, x := range []struct{ name, old, fresh string }{{"newer", "2026-01-01", "2026-02-01"}, {"equal", "2026-01-01", "2026-01-01"}, {"empty", "", ""}} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				old, fresh := eachSecond("job", s), eachSecond("job", s)
				fresh.TTL = 7 * time.Second
				var olds []*running
				for _, n := range []string{"old0", "old1"} {
					olds = append(olds, c.start(n, scheduler.Config{Revision: x.old}, old))
				}
				time.Sleep(4 * time.Second)
				for n := range 12 { // at all phases of the old nodes' beats and tries
					node := c.start("new", scheduler.Config{Revision: x.fresh}, fresh)
					time.Sleep(time.Duration(1000+n*130) * time.Millisecond)
					c.wantTTL(7*time.Second, "with a newer node")
					c.leave(olds[0])
					olds[0] = c.start("old0", scheduler.Config{Revision: x.old}, old)
					for range 14 {
						time.Sleep(time.Second)
						c.wantTTL(7*time.Second, "after an old node was started again")
					}
					c.leave(node)
					time.Sleep(7 * time.Second)
					c.wantTTL(5*time.Second, "after the newer node left")
					// What was replaced counts again only when its successor is gone: begin anew with others.
					if x.old == x.fresh {
						break
					}
				}
				c.end()
				s.check(t)
				if got := outcomes(c.runs("job")); got["superseded(definition replaced)"] != 0 {
					t.Errorf("ticks of a schedule that did not change were superseded: %v", got)
				}
			})
		})
	}
}
