package scheduler_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// around lets a test stand between a client and the ledger's scripts: before and behind each call of one.
type around struct {
	script        string
	before, after func()
}

func (a around) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		its := false
		for _, s := range ledger.Scripts() {
			its = its || s.Name() == a.script && len(cmd.Args()) > 1 && (cmd.Args()[1] == s.Hash() || cmd.Args()[1] == s.Source())
		}
		if its && a.before != nil {
			a.before()
		}
		err := next(ctx, cmd)
		if its && a.after != nil {
			a.after()
		}
		return err
	}
}

// A run lies behind ticks that were skipped, which nobody remembers. While its node has not told of it with the gap, the
// others claim nothing: they would come to its tick.
func TestFailoverOthersWaitForGaps(t *testing.T) {
	for _, slow := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			var first atomic.Pointer[string]
			job := jobs.Job{Name: "job", Schedule: "* * * * * *", TTL: 10 * time.Second, Func: func(ctx context.Context, r *jobs.Run) error {
				name := r.Node()
				first.CompareAndSwap(nil, &name)
				s.write(r)
				if *first.Load() != name {
					return nil
				}
				select {
				case <-time.After(3500 * time.Millisecond):
				case <-ctx.Done():
				}
				return context.Cause(ctx)
			}}
			var late atomic.Bool
			for _, name := range []string{"x", "y"} {
				client := server.Client()
				client.AddHook(around{script: "reassert", before: func() {
					if late.Load() && *first.Load() == name {
						time.Sleep(slow)
					}
				}})
				c.startOver(client, name, scheduler.Config{}, job)
			}
			time.Sleep(1300 * time.Millisecond)
			held := server.Snapshot()
			time.Sleep(4200 * time.Millisecond)
			late.Store(true)
			failOver(server, held, "b")
			time.Sleep(4 * time.Second)
			late.Store(false)
			time.Sleep(6 * time.Second)
			c.end()
			s.check(t)
		})
	}
}

// Two nodes ran a job's ticks one after the other, and the one with the later ones tells first: it waits for the other.
func TestFailoverGapsAreFilled(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		slow := server.Client()
		slow.AddHook(around{script: "reassert", before: func() { time.Sleep(300 * time.Millisecond) }})
		c.startOver(slow, "a", scheduler.Config{}, job)
		time.Sleep(1500 * time.Millisecond)
		held := server.Snapshot()
		time.Sleep(3 * time.Second)
		c.start("b", scheduler.Config{}, job)
		if err := c.inspector().DrainNode(t.Context(), "a", scheduler.DrainOptions{Author: "me", Reason: "b is to run what follows"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		failOver(server, held, "b")
		time.Sleep(6 * time.Second)
		c.end()
		s.check(t)
		got := outcomes(c.runs("job"))
		if int(got["succeeded"]) != len(s.all()) || len(got) != 1 || s.ranOn("a", time.Time{}) == 0 || s.ranOn("b", time.Time{}) == 0 {
			t.Errorf("history %v of %d runs", got, len(s.all()))
		}
	})
}

// The answer of the old server to the end of a run comes when the new one was told that the run is going. The end is told too.
func TestFailoverLateAnswerToAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := jobs.Job{Name: "job", Schedule: "*/20 * * * * *", TTL: 4 * time.Second, OnCrash: jobs.OnCrashRerun, Func: func(_ context.Context, r *jobs.Run) error {
			s.write(r)
			time.Sleep(900 * time.Millisecond)
			return nil
		}}
		var held redistest.Snapshot
		var armed atomic.Bool
		client := server.Client()
		client.AddHook(around{script: "settle", after: func() {
			if armed.Swap(false) {
				failOver(server, held, "b") // the server after this one has not got it
				time.Sleep(900 * time.Millisecond)
			}
		}})
		c.startOver(client, "x", scheduler.Config{}, job)
		time.Sleep(39 * time.Second) // the server knows the script by now
		held = server.Snapshot()
		armed.Store(true)
		time.Sleep(30 * time.Second)
		got := outcomes(c.runs("job"))
		if armed.Load() || int(got["succeeded"]) != len(s.all()) || len(got) != 1 {
			t.Errorf("history %v of %d runs", got, len(s.all()))
		}
		s.check(t)
	})
}

// A node that is told to end in the second of a failover tells what it knows before it leaves.
func TestFailoverLeavesWhenItHasTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		job.Schedule = "*/10 * * * * *"
		a, b := c.start("a", scheduler.Config{}, job), c.start("b", scheduler.Config{}, job)
		time.Sleep(9500 * time.Millisecond)
		held := server.Snapshot()
		time.Sleep(700 * time.Millisecond)
		ran := a
		if s.all()[len(s.all())-1].node == "b" {
			ran = b
		}
		failOver(server, held, "b")
		ran.stop()
		c.leave(ran)
		time.Sleep(6 * time.Second)
		s.check(t)
	})
}

// One run has to wait until others have told theirs. The node's other runs are renewed meanwhile.
func TestFailoverKeepsTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		behind := jobs.Job{Name: "behind", Schedule: "* * * * * *", TTL: 15 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			select {
			case <-time.After(3500 * time.Millisecond): // its ticks meanwhile are skipped
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}}
		other := lasting(20*time.Second, started, ended)
		other.Schedule, other.TTL = "*/5 * * * * *", 3*time.Second
		var network redistest.Net
		c.start("x", scheduler.Config{}, behind, other)
		third := jobs.Job{Name: "third", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }}
		c.startOver(network.Client(server.Options()), "silent", scheduler.Config{DrainTimeout: time.Second}, third)
		<-started
		time.Sleep(1300 * time.Millisecond)
		held := server.Snapshot()
		time.Sleep(4200 * time.Millisecond)
		network.Cut()
		failOver(server, held, "b")
		if cause := <-ended; cause != nil {
			t.Errorf("the run's context ended: %v", cause)
		}
		network.Heal()
		time.Sleep(3 * time.Second)
	})
}

// The new server's clock is an hour off, and is not believed. What runs is told to it all the same.
func TestFailoverToAWrongClock(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		c.start("a", scheduler.Config{}, lasting(30*time.Second, started, ended))
		<-started
		time.Sleep(2500 * time.Millisecond)
		server.StepClock(time.Hour)
		server.SetRunID(strings.Repeat("b", 40))
		if cause := <-ended; cause != nil {
			t.Errorf("the run's context ended: %v", cause)
		}
		server.StepClock(-time.Hour)
		time.Sleep(5 * time.Second)
	})
}

// A restart that lost nothing: ends whose rows have left the history are not recorded anew, however short that is.
func TestFailoverTrimmedHistory(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		after := eachSecond("after", s)
		after.Schedule, after.After = "", "job"
		parts := eachSecond("parts", s)
		parts.Shards = 7
		c.start("a", scheduler.Config{HistoryKeep: 16}, eachSecond("job", s), after, parts)
		time.Sleep(40500 * time.Millisecond)
		server.SetRunID(strings.Repeat("b", 40))
		time.Sleep(6 * time.Second)
		views, err := c.inspector().Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			if got, want := v.Counts["succeeded"], int64(len(s.ticks(v.Name))); got != want || want < 40 {
				t.Errorf("%s: %d ends are counted of %d runs", v.Name, got, want)
			}
		}
		if n := c.logs.count("Redis has lost runs") + c.logs.count("Redis had lost"); n > 0 {
			t.Errorf("%d lines say that something was lost", n)
		}
	})
}

// While it waits for others, a node does not ask more than it would otherwise.
func TestFailoverHoldDoesNotSpin(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		var told atomic.Int64
		client := server.Client()
		client.AddHook(around{script: "reassert", before: func() { told.Add(1) }})
		var network redistest.Net
		c.startOver(client, "x", scheduler.Config{FailoverHold: 10 * time.Second}, eachSecond("a", s), eachSecond("b", s), eachSecond("c", s))
		c.startOver(network.Client(server.Options()), "silent", scheduler.Config{DrainTimeout: time.Second}, eachSecond("a", s))
		time.Sleep(4500 * time.Millisecond)
		network.Cut()
		server.SetRunID(strings.Repeat("b", 40))
		time.Sleep(8 * time.Second)
		if n := told.Load(); n < 1 || n > 6 {
			t.Errorf("it told %d times; once in each partition is enough", n)
		}
		network.Heal()
		time.Sleep(3 * time.Second)
	})
}
