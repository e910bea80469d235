package scheduler_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// lasting is a job each minute that works for some time, and says with what it ended.
func lasting(d time.Duration, started chan<- time.Time, ended chan<- error) jobs.Job {
	return jobs.Job{Name: "lasting", Schedule: "@every 1m", TTL: 6 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
		started <- time.Now()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}}
}

// failOver makes the embedded Redis another server, with the data of an earlier moment.
func failOver(server *redistest.Embedded, held redistest.Snapshot, runID string) {
	server.Restore(held)
	server.SetRunID(strings.Repeat(runID, 40))
}

// The grant of a run is lost while it goes: it goes on under its token, its end is recorded, and its tick is not granted again.
func TestFailoverRestoresWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		job := lasting(5*time.Second, started, ended)
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, scheduler.Config{}, job)
		}
		time.Sleep(time.Second)
		held := server.Snapshot()
		<-started
		failOver(server, held, "b")
		if cause := <-ended; cause != nil {
			t.Errorf("the run's context ended: %v", cause)
		}
		time.Sleep(5 * time.Second)
		got := outcomes(c.runs(job.Name))
		if len(started) != 0 || got["succeeded"] != 1 || len(got) != 1 {
			t.Errorf("%d more runs, history %v; want the one that went on", len(started), got)
		}
		if c.logs.count("they are restored") != 1 {
			t.Error("nobody said that a run was restored")
		}
	})
}

// The first that a new server is asked may be to renew a lease that it has never heard of. That is no answer: it is told first.
func TestFailoverLeaseWaitsForTheAssertion(t *testing.T) {
	for at := 100 * time.Millisecond; at < time.Second; at += 60 * time.Millisecond { // the node looks at the clock in between
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			started, ended := make(chan time.Time, 2), make(chan error, 2)
			job := lasting(3*time.Second, started, ended)
			job.Schedule, job.TTL = "*/4 * * * * *", 3*time.Second // renewed after one
			c.start("a", scheduler.Config{}, job)
			time.Sleep(2 * time.Second)
			held := server.Snapshot()
			<-started
			time.Sleep(at)
			failOver(server, held, "b")
			if cause := <-ended; cause != nil {
				t.Errorf("%s after its start: the run's context ended: %v", at, cause)
			}
		})
	}
}

// The end of a run is lost, and so is its grant: both are told again, with what was recorded of it.
func TestFailoverTellsEndsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{}, job)
		}
		time.Sleep(3500 * time.Millisecond)
		held := server.Snapshot()
		time.Sleep(5 * time.Second)
		before := len(s.all())
		failOver(server, held, "b")
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t) // no tick twice
		if got := outcomes(c.runs(job.Name)); int(got["succeeded"]) != len(s.all()) || len(got) != 1 || before < 8 {
			t.Errorf("history %v of %d runs, %d of them before the failover", got, len(s.all()), before)
		}
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); late > 1500*time.Millisecond {
				t.Errorf("tick %s started %s late; two nodes hear of each other within a beat", r.tick, late)
			}
		}
	})
}

// A node that cannot be reached keeps the others from claiming for FailoverHold, and no longer.
func TestFailoverHoldIsBounded(t *testing.T) {
	for _, hold := range []time.Duration{0, time.Second} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			job := eachSecond("job", s)
			var network redistest.Net
			cfg := scheduler.Config{FailoverHold: hold, DrainTimeout: time.Second}
			c.startOver(network.Client(server.Options()), "silent", cfg, job)
			c.start("b", cfg, job)
			time.Sleep(4500 * time.Millisecond) // between two ticks: what it runs would hold the job
			network.Cut()
			server.SetRunID(strings.Repeat("b", 40))
			changed := time.Now()
			time.Sleep(10 * time.Second)
			var first time.Time
			for _, r := range s.all() {
				if r.at.After(changed) && first.IsZero() {
					first = r.at
				}
			}
			want := cmp.Or(hold, 3*time.Second)
			if waited := first.Sub(changed); waited < want-100*time.Millisecond || waited > want+2*time.Second {
				t.Errorf("hold %s: the first run came %s after the failover; want about %s", hold, waited, want)
			}
			network.Heal()
			time.Sleep(4 * time.Second)
			c.end()
			s.check(t)
		})
	}
}

// A node that starts before the others have told a new server what they run does not claim what they run.
func TestFailoverStartingNodeWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		started, ended := make(chan time.Time, 3), make(chan error, 3)
		job := lasting(8*time.Second, started, ended)
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{}, job)
		time.Sleep(time.Second)
		held := server.Snapshot()
		<-started
		network.Cut() // for as long as it takes to reach the new server, say
		failOver(server, held, "b")
		c.start("b", scheduler.Config{}, job)
		time.Sleep(1500 * time.Millisecond)
		network.Heal()
		if cause := <-ended; cause != nil {
			t.Errorf("the run's context ended: %v", cause)
		}
		time.Sleep(3 * time.Second)
		if got := outcomes(c.runs(job.Name)); len(started) != 0 || got["succeeded"] != 1 {
			t.Errorf("%d more runs, history %v", len(started), got)
		}
	})
}

// While nothing is claimed for a failover, a node is not ready, and says why.
func TestFailoverIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "silent", scheduler.Config{DrainTimeout: time.Second}, jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }})
		n := c.start("b", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }})
		time.Sleep(3 * time.Second)
		network.Cut()
		server.SetRunID(strings.Repeat("b", 40))
		time.Sleep(1500 * time.Millisecond)
		if err := n.Ready(); err == nil || !strings.Contains(err.Error(), "failed over") {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(5 * time.Second)
		if err := n.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		network.Heal()
	})
}
