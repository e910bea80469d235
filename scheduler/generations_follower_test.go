package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The generation that is promoted has dropped a job that follows another one, and a node of the old generation goes on, on standby. The
// follower is nobody's: it misses the ticks of its upstream, and no run of it waits for ever.
func TestPromoteWithoutAFollower(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		up := eachSecond("up", s)
		down := jobs.Job{Name: "down", After: "up", Func: up.Func}
		c.start("old", scheduler.Config{Partitions: 1}, up, down)
		time.Sleep(5 * time.Second)
		c.start("new", scheduler.Config{Partitions: 1, Generation: "neo"}, up)
		time.Sleep(5 * time.Second)
		must[scheduler.Promotion](t)(c.inspector().Promote(t.Context(), "neo", scheduler.PromoteOptions{}))
		time.Sleep(2 * time.Minute)
		client := server.Client()
		defer client.Close()
		if n := client.ZCard(t.Context(), "{escapement:0}:pending").Val(); n > 3 {
			t.Errorf("%d runs of it wait, two minutes after the promotion", n)
		}
		if v := must[scheduler.JobView](t)(c.inspector().Job(t.Context(), "down")); !v.Orphan || v.Counts["missed"] < 80 {
			t.Errorf("the follower: %+v", v)
		}
		if c.logs.count("no living node holds this job, which follows another one") == 0 {
			t.Error("nobody said so")
		}
	})
}

// The same where the old generation has got one of its other jobs back: its nodes are not on standby, and hold the follower in a
// definition that is not the stored one.
func TestPromoteSomeBesideADroppedFollower(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		up, solo := eachSecond("up", s), eachSecond("solo", s)
		down := jobs.Job{Name: "down", After: "up", Func: up.Func}
		c.start("old", scheduler.Config{Partitions: 1}, up, down, solo)
		time.Sleep(5 * time.Second)
		c.start("new", scheduler.Config{Partitions: 1, Generation: "neo"}, up, solo)
		time.Sleep(5 * time.Second)
		c.promote("neo", scheduler.PromoteOptions{})
		c.promote("", scheduler.PromoteOptions{Pattern: "solo"})
		time.Sleep(2 * time.Minute)
		client := server.Client()
		defer client.Close()
		if n := client.ZCard(t.Context(), "{escapement:0}:pending").Val(); n > 3 {
			t.Errorf("%d runs of it wait, two minutes after the promotion", n)
		}
		if v := must[scheduler.JobView](t)(c.inspector().Job(t.Context(), "down")); !v.Orphan || v.Owner != "" || v.Counts["missed"] < 80 {
			t.Errorf("the follower: %+v", v)
		}
		if c.logs.count("no living node holds this job, which follows another one") == 0 {
			t.Error("nobody said so")
		}
	})
}
