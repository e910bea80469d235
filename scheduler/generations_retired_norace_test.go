//go:build !race

package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Nodes of a retired generation come back after days: they change and claim nothing, whatever their revision says.
func TestRetiredNodesStayHarmless(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		hourly := func(name, schedule string) jobs.Job {
			j := eachSecond(name, s)
			j.Schedule = schedule
			return j
		}
		old := c.start("old", scheduler.Config{Generation: "one", Revision: "2030"}, hourly("job", "@every 1m"), hourly("gone", "@every 1m"))
		time.Sleep(2 * time.Second)
		fresh := c.start("new", scheduler.Config{Generation: "two", Revision: "2026"}, hourly("job", "@every 2m"))
		time.Sleep(3 * time.Second)
		if p := c.promote("two", scheduler.PromoteOptions{}); p.Switched.Count != 1 || p.Orphaned.Count != 1 {
			t.Errorf("%+v", p)
		}
		time.Sleep(time.Minute)
		c.leave(old)
		c.leave(fresh) // else every second of these days is simulated
		time.Sleep(4 * 24 * time.Hour)
		fresh = c.start("new", scheduler.Config{Generation: "two", Revision: "2026"}, hourly("job", "@every 2m"))
		time.Sleep(5 * time.Second)
		before := c.job("job")
		since := time.Now()
		for _, revision := range []string{"2030", "", "2026"} {
			c.start("back"+revision, scheduler.Config{Generation: "one", Revision: revision}, hourly("job", "@every 1m"), hourly("gone", "@every 1m"), hourly("more", "@every 1m"))
		}
		time.Sleep(3 * time.Minute)
		c.leave(fresh) // nor when nobody else is left
		time.Sleep(3 * time.Minute)
		for _, r := range s.all() {
			if r.tick.After(since) && r.node != "new" {
				t.Errorf("%s ran on %s", r.job, r.node)
			}
		}
		if now := c.job("job"); now.Generation != "two" || now.Schedule != before.Schedule || now.Revision != before.Revision {
			t.Errorf("the definition was %+v and is %+v", before, now)
		}
		c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
			if _, err := i.Job(ctx, "more"); !errors.Is(err, scheduler.ErrUnknownJob) {
				t.Errorf("a retired generation made a job: %v", err)
			}
			if err := i.Remove(ctx, "gone"); err != nil {
				t.Errorf("an orphan that only nodes on standby hold: %v", err)
			}
		})
	})
}
