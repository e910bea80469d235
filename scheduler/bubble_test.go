package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// bubble runs a test with a cluster in virtual time, over the embedded Redis.
func bubble(t *testing.T, test func(t *testing.T, c *cluster, redis *redistest.Embedded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c := &cluster{t: t, logs: &logs{}, client: server.Client}
		test(t, c, server)
		c.end()
	})
}

func eachSecond(name string, s *sink) jobs.Job {
	return jobs.Job{Name: name, Schedule: "* * * * * *", TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
		s.write(r)
		return nil
	}}
}

func TestThreeNodesRunEachTickOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 30 {
			list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
		}
		for i := range 3 {
			c.start(fmt.Sprintf("n%d", i), scheduler.Config{}, list...)
		}
		time.Sleep(60*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		byNode := make(map[string]int)
		for _, r := range s.all() {
			byNode[r.node]++
		}
		for _, j := range list {
			if n := len(s.ticks(j.Name)); n < 59 || n > 61 {
				t.Errorf("%s ran %d of 60 ticks", j.Name, n)
			}
		}
		if len(byNode) != 3 {
			t.Errorf("work is not spread over the nodes: %v", byNode)
		}
	})
}

func TestTicksOfADeadNodeStartElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 10 {
			list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
		}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, list...)
		c.start("b", scheduler.Config{}, list...)
		c.start("c", scheduler.Config{}, list...)
		time.Sleep(10*time.Second + 900*time.Millisecond)
		network.Cut() // as good as dead: nothing it sends arrives any more
		died := time.Now()
		time.Sleep(20 * time.Second)
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); late > 2*time.Second {
				t.Errorf("P6: %s %s started %s late on %s", r.job, r.tick, late, r.node)
			}
			if r.node == "doomed" && r.at.After(died) {
				t.Errorf("a node without Redis started %s %s", r.job, r.tick)
			}
		}
		for _, j := range list {
			if n := len(s.ticks(j.Name)); n < 29 {
				t.Errorf("%s ran %d of 30 ticks", j.Name, n)
			}
		}
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t)
	})
}

// A node that waits for its Redis says what keeps it from registering.
func TestNotReadySaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		network := &redistest.Net{}
		network.Cut()
		s := &sink{}
		n := c.startOver(network.Client(server.Options()), "early", scheduler.Config{WaitForRedis: true}, eachSecond("a", s))
		time.Sleep(20 * time.Second)
		if err := n.Ready(); !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "not registered yet") {
			t.Errorf("without Redis: %v", err)
		}
		network.Heal()
		time.Sleep(20 * time.Second)
		if err := n.Ready(); err != nil || len(s.all()) == 0 {
			t.Errorf("with Redis: %v, %d runs", err, len(s.all()))
		}
	})
}

// A node without jobs has nothing to register: it is ready, and ends as others do.
func TestNodeWithoutJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		n := c.start("idle", scheduler.Config{})
		time.Sleep(time.Second)
		if err := n.Ready(); err != nil || c.logs.count("node started") != 1 {
			t.Errorf("not ready after a second: %v", err)
		}
		c.start("busy", scheduler.Config{}, jobs.Job{Name: "a", Schedule: "@every 1s", Func: func(context.Context, *jobs.Run) error { return nil }})
		time.Sleep(5 * time.Second)
		if err := n.Ready(); err != nil {
			t.Errorf("beside another node: %v", err)
		}
		c.end()
	})
}

func TestHeldJobSkipsItsTicks(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{}, jobs.Job{
			Name: "slow", Schedule: "@every 1s", TTL: 5 * time.Second,
			Func: func(_ context.Context, r *jobs.Run) error {
				s.write(r)
				time.Sleep(3500 * time.Millisecond)
				return nil
			},
		})
		time.Sleep(19*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		got := outcomes(c.runs("slow"))
		if got["succeeded"] != 5 || got["skipped(overlap)"] != 14 {
			t.Errorf("20 s of a job that takes 3.5 s each second: %v, want 5 succeeded and 14 skipped", got)
		}
	})
}

func TestLostRepliesCostNothing(t *testing.T) {
	// The word by which a request is known on the wire.
	for script, word := range map[string]string{"claim": "\r\nschedule\r\n", "settle": "\r\nsucceeded\r\n"} {
		t.Run(script, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				s := &sink{}
				var network redistest.Net
				job := eachSecond("job", s)
				job.Schedule = "@every 3s"
				c.startOver(network.Client(server.Options()), "a", scheduler.Config{}, job)
				for range 5 {
					time.Sleep(6 * time.Second)
					network.LoseReplies(1, word)
				}
				time.Sleep(7 * time.Second)
				if left := network.Losing(); left != 0 {
					t.Errorf("%d replies were not lost: the fault did not happen", left)
				}
				c.end()
				s.check(t)
				got := outcomes(c.runs("job"))
				if n := len(s.ticks("job")); n != 12 || got["succeeded"] != 12 || len(got) != 1 {
					t.Errorf("%d runs, history %v; want each of 12 ticks succeeded", n, got)
				}
			})
		})
	}
}

func TestRedisAwayForALongTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{}, eachSecond("job", s))
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		before := len(s.all())
		server.Stop()
		time.Sleep(2 * time.Minute)
		if during := len(s.all()); during > before+1 {
			t.Errorf("%d runs without Redis", during-before)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		c.end()
		s.check(t)
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); late > 15*time.Second && r.trigger != jobs.TriggerCatchUp {
				t.Errorf("tick %s ran %s late, not as catch-up", r.tick, late)
			}
		}
		got := outcomes(c.runs("job"))
		if got["missed(late)"] < 110 || got["missed(late)"] > 121 {
			t.Errorf("history %v, want about 119 ticks missed", got)
		}
		if c.logs.count("Redis does not answer") == 0 || c.logs.count("Redis answers again") == 0 {
			t.Error("the nodes did not say that Redis was away and back")
		}
	})
}

func TestDrainCancelsWhatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		cause := make(chan error, 1)
		n := c.start("a", scheduler.Config{DrainTimeout: 3 * time.Second}, jobs.Job{
			Name: "endless", Schedule: "@every 1m", TTL: 5 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return ctx.Err()
			},
		})
		time.Sleep(61 * time.Second)
		began := time.Now()
		c.leave(n)
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("drain took %s, want the drain time of 3s", took)
		}
		if err := <-cause; !errors.Is(err, scheduler.ErrDraining) {
			t.Errorf("cause %v", err)
		}
		if got := outcomes(c.runs("endless")); got["cancelled(draining)"] != 1 {
			t.Errorf("history %v", got)
		}
	})
}

func TestTimeoutPanicAndErrorAreRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, timeout time.Duration, f jobs.Func) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 1m", TTL: 5 * time.Second, Timeout: timeout, Func: f}
		}
		c.start("a", scheduler.Config{},
			job("late", time.Second, func(ctx context.Context, _ *jobs.Run) error { <-ctx.Done(); return ctx.Err() }),
			job("wrong", 0, func(context.Context, *jobs.Run) error { return errors.New("no paper") }),
			job("mad", 0, func(context.Context, *jobs.Run) error { panic("at the disco") }))
		time.Sleep(65 * time.Second)
		for name, want := range map[string][2]string{
			"late": {"timed_out", "context deadline exceeded"}, "wrong": {"failed", "no paper"}, "mad": {"failed", "panic: at the disco"},
		} {
			r := c.runs(name)[0]
			if text, _, _ := strings.Cut(r.Error, "\n"); r.Outcome != want[0] || text != want[1] {
				t.Errorf("%s: %s %q, want %v", name, r.Outcome, r.Error, want)
			}
		}
	})
}

// A node whose wall clock is wrong by minutes fires at the right moment.
func TestWallClocksDoNotMatter(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		for name, off := range map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute} {
			c.start(name, scheduler.Config{Wall: func() time.Time { return time.Now().Add(off) }}, eachSecond("job-"+name, s), eachSecond("both", s))
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); late > 100*time.Millisecond && r.tick.After(s.all()[0].tick.Add(2*time.Second)) {
				t.Errorf("%s %s late by %s on %s", r.job, r.tick, late, r.node)
			}
		}
		if n := len(s.ticks("both")); n < 29 {
			t.Errorf("ran %d of 30 ticks", n)
		}
	})
}
