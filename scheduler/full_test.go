package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Functions that do not heed their contexts take all slots. The node says so, of the functions and of what waits for them, once in a
// while, and no more when one has returned.
func TestNoSlotIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		enough := make(chan struct{})
		deafJob := func(name string) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 5m", Timeout: time.Second, Func: func(context.Context, *jobs.Run) error {
				<-enough
				return nil
			}}
		}
		s := &sink{}
		third := eachSecond("third", s)
		third.Schedule = "1 5 * * * *" // when the other two have the slots
		c.start("a", scheduler.Config{MaxRunning: 2}, deafJob("first"), deafJob("second"), third)
		time.Sleep(5*time.Minute + 25*time.Second)
		if said, on := c.logs.count("all slots are taken"), c.logs.count("goes on though its context has ended"); said != 2 || on != 2 {
			t.Errorf("said %d times that all slots are taken, and of %d functions that they go on; want 2 and 2", said, on)
		}
		close(enough)
		time.Sleep(time.Minute)
		if said := c.logs.count("all slots are taken"); said != 2 || len(s.all()) != 1 {
			t.Errorf("said %d times, %d runs of the job that waited; want 2 and 1", said, len(s.all()))
		}
	})
}

// A job's function sees the values of the context that the node was run with.
func TestFunctionsSeeTheValues(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		saw := make(chan any, 100)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "@every 1s", Func: func(ctx context.Context, _ *jobs.Run) error {
			saw <- ctx.Value(nodeName{})
			return nil
		}})
		if got := <-saw; got != "a" {
			t.Errorf("it saw %v", got)
		}
	})
}

// A node that finds a run whose node has died tells its hook, and names the dead one: that one cannot.
func TestAbandonedIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		job := patient(20*time.Second, started, ended)
		told := make(chan scheduler.AbandonedEvent, 9)
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{DrainTimeout: time.Second}, job)
		<-started
		c.start("b", scheduler.Config{Hooks: &scheduler.Hooks{Abandoned: func(e scheduler.AbandonedEvent) { told <- e }}}, job)
		time.Sleep(time.Second)
		network.Cut()
		if e := <-told; e.Job != job.Name || e.Run == "" || e.Token == 0 || e.Holder != "a" || e.Node != "b" || e.Lag < 0 || e.Lag > time.Minute {
			t.Errorf("told of %+v", e)
		}
		network.Heal()
		time.Sleep(3 * time.Second)
		if len(told) > 0 {
			t.Errorf("told of %+v as well", <-told)
		}
	})
}
