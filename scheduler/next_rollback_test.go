package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The last node of a newer build leaves: the others have their definitions back with the next beat, and not with the next try
// of what is outside. No tick is lost, also not of a sharded job.
func TestRollbackIsSoon(t *testing.T) {
	for offset := range 5 { // where in the turn of the registrar it happens
		t.Run(fmt.Sprint("after ", offset, "s"), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				build := func(ttl time.Duration) []jobs.Job {
					list := many(12, s)
					for i := range list {
						list[i].TTL = ttl
					}
					list[0].Shards = 4
					return list
				}
				for i := range 3 {
					c.start(fmt.Sprint("old", i), scheduler.Config{Revision: "1"}, build(5*time.Second)...)
				}
				time.Sleep(4 * time.Second)
				newer := c.start("newer", scheduler.Config{Revision: "2"}, build(6*time.Second)...)
				time.Sleep(8*time.Second + time.Duration(offset)*time.Second + 650*time.Millisecond)
				if v := c.job("job-3"); len(v.Superseded) != 3 {
					t.Fatalf("superseded on %v", v.Superseded)
				}
				left := time.Now()
				c.leave(newer)
				time.Sleep(8 * time.Second)
				worst := time.Duration(0)
				for _, r := range s.all() {
					if r.at.After(left) {
						worst = max(worst, r.at.Sub(r.tick))
					}
				}
				t.Logf("the latest start was %s late", worst)
				if worst > 1100*time.Millisecond {
					t.Errorf("a tick started %s late", worst)
				}
				for _, j := range build(0) {
					at := s.ticks(j.Name)
					for i := 1; i < len(at); i++ {
						if gap := at[i].Sub(at[i-1]); gap > time.Second {
							t.Errorf("%s: tick %s after %s", j.Name, at[i].Format(time.TimeOnly), at[i-1].Format(time.TimeOnly))
						}
					}
				}
				for _, job := range []string{"job-0", "job-3"} {
					for key, n := range outcomes(c.runs(job)) {
						if key != "succeeded" && key != "running" {
							t.Errorf("%s: %d of %s", job, n, key)
						}
					}
				}
			})
		})
	}
}
