package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The two nodes that hold some jobs lose the network while ticks of them come due, and another node, which holds none of them, puts off
// the look at them. One comes back: it starts the late ticks soon, also of the jobs for which the other one went first.
func TestOrphansAreHeldAgain(t *testing.T) {
	for back := range 2 {
		t.Run(fmt.Sprint("node ", back), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				s := &sink{}
				var list []jobs.Job
				for i := range 8 {
					list = append(list, eachSecond(fmt.Sprint("job-", i), s))
					list[i].Schedule = "@every 1h"
				}
				time.Sleep(59*time.Minute + 40*time.Second)
				var roads [2]redistest.Net
				for i := range roads {
					c.startOver(roads[i].Client(server.Options()), fmt.Sprint("n", i), scheduler.Config{DrainTimeout: time.Second}, list...)
				}
				c.start("other", scheduler.Config{}, jobs.Job{Name: "other", Schedule: "@every 1h", Func: list[0].Func})
				time.Sleep(10 * time.Second)
				for i := range roads {
					roads[i].Cut()
				}
				time.Sleep(6 * time.Minute)
				roads[back].Heal()
				time.Sleep(10 * time.Second)
				for _, j := range list {
					if len(s.ticks(j.Name)) != 1 {
						t.Errorf("%s ran at %v within 10 s after a node that holds it was back", j.Name, s.ticks(j.Name))
					}
				}
				roads[1-back].Heal()
				time.Sleep(10 * time.Second)
				c.end()
				s.check(t)
			})
		})
	}
}
