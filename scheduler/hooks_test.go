package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// diary records the calls of hooks, a line each.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// count is how many lines begin so.
func (d *diary) count(what string) int {
	n := 0
	for _, l := range d.all() {
		if strings.HasPrefix(l, what) {
			n++
		}
	}
	return n
}

const clockTime = "15:04:05"

// hooks write the diary; runs are named by their job and tick.
func (d *diary) hooks() *scheduler.Hooks {
	run := func(what string) func(scheduler.RunEvent) {
		return func(e scheduler.RunEvent) {
			if e.Run == "" || e.Token == 0 {
				d.add("%s without run or token", what)
			}
			d.add("%s %s %s on %s attempt %d %s lag %s", what, e.Job, e.Tick.Format(clockTime), e.Node, e.Attempt, e.Trigger, e.Lag.Truncate(time.Second))
		}
	}
	return &scheduler.Hooks{
		Due:     func(e scheduler.TickEvent) { d.add("due %s %s on %s", e.Job, e.Tick.Format(clockTime), e.Node) },
		Claimed: run("claimed"), Started: run("started"), LeaseLost: run("lost"),
		Settled: func(e scheduler.SettledEvent) {
			d.add("settled %s %s attempt %d %s %q %q after %s, %d tries, recorded %t", e.Job, e.Tick.Format(clockTime), e.Attempt,
				e.Outcome, e.Reason, e.Error, e.Duration.Truncate(time.Second), e.Tries, e.Recorded)
		},
		Skipped: func(e scheduler.SkippedEvent) {
			d.add("missed %s %s to %s %d %s(%s) on %s", e.Job, e.First.Format(clockTime), e.Last.Format(clockTime), e.Count, e.Outcome, e.Reason, e.Node)
		},
		Superseded: func(e scheduler.JobEvent) { d.add("superseded %s on %s: %s", e.Job, e.Node, e.Why) },
	}
}

func (d *diary) want(t *testing.T, want ...string) {
	t.Helper()
	if got := d.all(); !slices.Equal(got, want) {
		t.Errorf("the hooks heard\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// A job takes longer than its period and needs two tries.
func TestHooksInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var d diary
		calls := 0
		job := jobs.Job{Name: "job", Schedule: "@every 10s", TTL: 5 * time.Second, Retry: jobs.Retry{Max: 1, Backoff: 10 * time.Millisecond}}
		job.Func = func(_ context.Context, r *jobs.Run) error {
			time.Sleep(6500 * time.Millisecond)
			if calls++; r.Try() == 1 || calls > 2 {
				return errors.New("no paper")
			}
			return nil
		}
		n := c.start("a", scheduler.Config{Hooks: d.hooks()}, job)
		time.Sleep(48 * time.Second)
		c.leave(n)
		d.want(t,
			"due job 00:00:10 on a",
			"claimed job 00:00:10 on a attempt 1 schedule lag 0s",
			"started job 00:00:10 on a attempt 1 schedule lag 0s",
			"due job 00:00:20 on a", // ahead of time, and the job was held
			"due job 00:00:20 on a",
			`missed job 00:00:20 to 00:00:20 1 skipped(overlap) on a`,
			`settled job 00:00:10 attempt 1 succeeded "" "" after 13s, 2 tries, recorded true`,
			"due job 00:00:30 on a",
			"claimed job 00:00:30 on a attempt 1 schedule lag 0s",
			"started job 00:00:30 on a attempt 1 schedule lag 0s",
			"due job 00:00:40 on a",
			"due job 00:00:40 on a",
			`missed job 00:00:40 to 00:00:40 1 skipped(overlap) on a`,
			`settled job 00:00:30 attempt 1 failed "" "no paper; before: try 1: no paper" after 13s, 2 tries, recorded true`,
		)
		if n.HooksDropped() != 0 {
			t.Errorf("%d dropped", n.HooksDropped())
		}
	})
}

// A function has returned in time after its timeout, and the lease is lost only while Redis does
// not take the outcome: no function was going then.
func TestNoLeaseLostHookAfterTheFunction(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var d diary
		var network redistest.Net
		job := jobs.Job{Name: "job", Schedule: "@every 1m", TTL: 15 * time.Second, Timeout: 3 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		n := c.startOver(network.Client(server.Options()), "a", scheduler.Config{Hooks: d.hooks()}, job)
		time.Sleep(62 * time.Second)
		network.Cut()
		time.Sleep(20 * time.Second)
		network.Heal()
		time.Sleep(15 * time.Second)
		c.leave(n)
		if d.count("lost") != 0 || c.logs.count("lease lost while the run was going") != 0 || d.count("settled job 00:01:00 attempt 1 timed_out") != 1 {
			t.Errorf("the run has timed out, and its function had returned before the lease was lost: %q", d.all())
		}
	})
}

// A lease is lost while its function is running: LeaseLost is called at once, before Settled. The
// run's end is not the recorded one when another node has reaped the run.
func TestLeaseLostHook(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var d diary
		var network redistest.Net
		job := jobs.Job{Name: "job", Schedule: "@every 1m", TTL: 5 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			time.Sleep(20 * time.Second)
			d.add("returned")
			return ctx.Err()
		}}
		n := c.startOver(network.Client(server.Options()), "a", scheduler.Config{Hooks: d.hooks()}, job)
		time.Sleep(61 * time.Second)
		c.start("b", scheduler.Config{}, eachSecond("other", &sink{}))
		network.Cut()
		time.Sleep(15 * time.Second)
		network.Heal()
		time.Sleep(15 * time.Second)
		c.leave(n)
		d.want(t,
			"due job 00:01:00 on a",
			"claimed job 00:01:00 on a attempt 1 schedule lag 0s",
			"started job 00:01:00 on a attempt 1 schedule lag 0s",
			"lost job 00:01:00 on a attempt 1 schedule lag 0s",
			"returned",
			`settled job 00:01:00 attempt 1 lost "" "context canceled" after 23s, 1 tries, recorded false`,
		)
	})
}

func TestSupersededHook(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var d diary
		s := &sink{}
		newer := eachSecond("job", s)
		newer.Schedule = "*/2 * * * * *"
		c.start("old", scheduler.Config{Revision: "1", Hooks: d.hooks()}, eachSecond("job", s))
		time.Sleep(3 * time.Second)
		c.start("new", scheduler.Config{Revision: "2"}, newer)
		time.Sleep(10 * time.Second)
		if n := d.count("superseded job on old: "); n != 1 {
			t.Errorf("%d times superseded, want once: %q", n, d.all())
		}
	})
}

// A hook that never returns blocks no run and no stop of the node. Events beyond the queue's end
// are counted.
func TestHooksBlockNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		stuck := make(chan struct{})
		defer close(stuck)
		list := many(60, s)
		n := c.start("a", scheduler.Config{Hooks: &scheduler.Hooks{Started: func(scheduler.RunEvent) { <-stuck }}}, list...)
		time.Sleep(20*time.Second + 500*time.Millisecond)
		ran := len(s.all())
		if ran < 60*19 {
			t.Errorf("%d of 1200 ticks ran", ran)
		}
		if want := int64(ran - 1 - 1024); n.HooksDropped() != want {
			t.Errorf("%d dropped of %d, want %d", n.HooksDropped(), ran, want)
		}
		if said := c.logs.count("the hooks are slower than the events"); said != 1 {
			t.Errorf("that was said %d times", said)
		}
		began := time.Now()
		c.leave(n)
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("the node took %s to stop, want 2 s", took)
		}
		if want := int64(ran - 1); n.HooksDropped() != want {
			t.Errorf("%d dropped of %d in the end, want %d", n.HooksDropped(), ran, want)
		}
	})
}

// Hooks that panic are counted, and later events are delivered.
func TestHooksMayPanic(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var d diary
		s := &sink{}
		hooks := d.hooks()
		hooks.Started = func(scheduler.RunEvent) { panic("no ink") }
		n := c.start("a", scheduler.Config{Hooks: hooks}, eachSecond("job", s))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		c.leave(n)
		ran := len(s.all())
		if ran < 9 || n.HooksDropped() != int64(ran) {
			t.Errorf("%d runs, %d dropped; want as many", ran, n.HooksDropped())
		}
		if got := d.count("settled job"); got != ran {
			t.Errorf("%d runs, and %d Settled events", ran, got)
		}
		if logged := c.logs.count("a hook panicked"); logged != 1 {
			t.Errorf("logged %d times", logged)
		}
	})
}

// The node is stopped while slow hooks are behind: every event is delivered before Run returns.
func TestHooksGetTheLastEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		heard := 0
		list := many(50, s)
		n := c.start("a", scheduler.Config{Hooks: &scheduler.Hooks{Settled: func(scheduler.SettledEvent) {
			time.Sleep(20 * time.Millisecond)
			heard++
		}}}, list...)
		time.Sleep(3*time.Second + 100*time.Millisecond)
		c.leave(n)
		if ran := len(s.all()); heard != ran || ran < 100 {
			t.Errorf("%d runs, %d heard of", ran, heard)
		}
	})
}

// A node that finds a dead node's run calls its own hook with the dead node's name: the dead node
// cannot.
func TestAbandonedHook(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		job := lasting(forever, started, ended)
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
