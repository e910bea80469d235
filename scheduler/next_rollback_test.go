package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The last node of a newer build leaves: the others have their definitions back with the next beat, and not with the next try of what is
// outside; but where ticks come due in the very moment of that beat, it may take another try. No tick is lost. A sharded one that takes until
// the next has come due is what that one is skipped for.
func TestRollbackIsSoon(t *testing.T) {
	slow := 0               // of the five
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
				if worst > 2*time.Second {
					t.Errorf("a tick started %s late", worst)
				}
				overlapped := int64(0)
				if worst > 900*time.Millisecond {
					overlapped = 1
					slow++
				}
				for _, j := range build(0) {
					at := s.ticks(j.Name)
					for i := 1; i < len(at); i++ {
						gap := at[i].Sub(at[i-1])
						if j.Shards > 1 {
							gap -= time.Duration(overlapped) * time.Second
						}
						if gap > time.Second {
							t.Errorf("%s: tick %s after %s", j.Name, at[i].Format(time.TimeOnly), at[i-1].Format(time.TimeOnly))
						}
					}
				}
				for _, job := range []string{"job-0", "job-3"} {
					for key, n := range outcomes(c.runs(job)) {
						if key == "skipped(overlap)" && job == "job-0" {
							n -= overlapped
						}
						if key != "succeeded" && key != "running" && n > 0 {
							t.Errorf("%s: %d of %s", job, n, key)
						}
					}
				}
			})
		})
	}
	if slow > 1 { // one may be what comes of a tick in that moment
		t.Errorf("%d of 5 had their definitions back with the next try only", slow)
	}
}
