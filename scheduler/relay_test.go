package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A deploy drops a follower. Each success of its upstream waits half a minute for the follower, and
// piles up nothing (P6). A node that returns with the follower in time runs the waiting ticks at
// once.
func TestFollowerThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		follower := func(name string) jobs.Job {
			return jobs.Job{Name: name, After: []string{"upstream"}, Func: eachSecond("", s).Func, Overlap: jobs.OverlapQueue}
		}
		upstream, live, old := eachSecond("upstream", s), follower("live"), follower("old")
		first := c.start("v1", scheduler.Config{Revision: "1", Partitions: 1}, upstream, live, old)
		time.Sleep(5 * time.Second)
		c.leave(first)
		for i := range 3 {
			c.start(fmt.Sprint("v2-", i), scheduler.Config{Revision: "2"}, upstream, live)
		}
		time.Sleep(50 * time.Second)
		if n, runs := c.redis().ZCard(t.Context(), "{escapement:0}:pending").Val(), len(s.ticks("live")); n > 3 || runs < 50 {
			t.Errorf("%d runs wait; the follower that lives ran %d times", n, runs)
		}
		if n := c.logs.count("no living node holds this job, which follows another one"); n < 1 || n > 3 {
			t.Errorf("said %d times that nobody holds it, want once for each node", n)
		}
		had, back := len(s.ticks("old")), time.Now()
		c.start("v1-again", scheduler.Config{Revision: "1"}, upstream, live, old)
		time.Sleep(5 * time.Second)
		if ran := len(s.ticks("old")) - had; ran < 25 {
			t.Errorf("%d ticks ran that had waited for it", ran)
		}
		for _, r := range s.all() {
			if r.job == "old" && r.at.After(back) && back.Sub(r.tick) > 32*time.Second {
				t.Errorf("it ran for %s, %s before it was back", r.tick, back.Sub(r.tick))
			}
		}
	})
}

// A follower of failures alone is not waited for after a success, though no node has it any more.
func TestFollowerOfFailuresThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		upstream := jobs.Job{Name: "upstream", Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
			if run.Tick().Second() == 10 {
				return errors.New("it broke")
			}
			return nil
		}}
		alert := jobs.Job{Name: "alert", After: []string{"upstream"}, When: jobs.WhenFailed, Func: upstream.Func}
		first := c.start("v1", scheduler.Config{Revision: "1", Partitions: 1}, upstream, alert)
		time.Sleep(5 * time.Second)
		c.leave(first)
		c.start("v2", scheduler.Config{Revision: "2"}, upstream)
		time.Sleep(22*time.Second + 500*time.Millisecond) // the failure waits
		if n := c.redis().ZCard(t.Context(), "{escapement:0}:outbox").Val(); n > 3 {
			t.Errorf("%d events wait, want that of the failure", n)
		}
		if v := c.job("alert"); v.Counts[jobs.OutcomeSkipped] < 23 || v.Counts[jobs.OutcomeMissed] != 0 {
			t.Errorf("meanwhile: %v", v.Counts)
		}
		time.Sleep(20 * time.Second)
		if v := c.job("alert"); v.Counts[jobs.OutcomeMissed] != 1 {
			t.Errorf("later: %v", v.Counts)
		}
	})
}

// A deploy stops the old nodes, and starts the new ones a minute later, some milliseconds from
// Redis and with many jobs to store. A tick of the upstream has ended in the drain, and they bring
// another definition of the follower: it has not missed the tick.
func TestFollowerIsReplacedWhileAnEventWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		upstream := lasting(5*time.Second, make(chan time.Time, 9), make(chan error, 9))
		upstream.Schedule = "@every 1h"
		follower := jobs.Job{Name: "follower", After: []string{upstream.Name}, Func: eachSecond("", s).Func}
		time.Sleep(59*time.Minute + 50*time.Second)
		first := c.start("v1", scheduler.Config{Partitions: 1, Revision: "1", DrainTimeout: 10 * time.Second}, upstream, follower)
		time.Sleep(12 * time.Second)
		c.leave(first)
		time.Sleep(time.Minute)
		list := many(1000, &sink{})
		for i := range list {
			list[i].Schedule = "@yearly"
		}
		follower.Timeout = time.Minute
		var network redistest.Net
		network.Delay(20 * time.Millisecond)
		c.startOver(network.Client(server.Options()), "v2", scheduler.Config{Partitions: 1, Revision: "2"}, append(list, upstream, follower)...)
		time.Sleep(10 * time.Second)
		c.end()
		if n := len(s.ticks("follower")); n != 1 {
			t.Errorf("it ran %d times: %+v", n, c.runs("follower"))
		}
	})
}
