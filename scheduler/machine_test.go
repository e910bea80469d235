package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

var errFiles = jobs.NodeFault(errors.New("too many open files"))

// A node whose machine cannot begin runs leaves them to the other nodes: each tick runs, and none
// has failed. The node logs the fault, and goes on when its machine is well.
func TestMachineThatCannotBeginRuns(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		var sick atomic.Bool
		var refused atomic.Int64
		list := many(6, s)
		for i := range list {
			well := list[i].Func
			list[i].Func = func(ctx context.Context, r *jobs.Run) error {
				if sick.Load() && r.Node() == "a" {
					refused.Add(1)
					return fmt.Errorf("command x not started: %w", errFiles)
				}
				return well(ctx, r)
			}
		}
		c.start("a", scheduler.Config{}, list...)
		c.start("b", scheduler.Config{}, list...)
		time.Sleep(5 * time.Second)
		from := time.Now()
		sick.Store(true)
		time.Sleep(15 * time.Second)
		found := strings.Join(c.problems(), "\n")
		if !strings.Contains(found, "error node_trouble a") || strings.Contains(found, "node_trouble b") {
			t.Errorf("found %s", found)
		}
		for _, n := range must[[]ops.NodeView](t)(c.ops().ListNodes(t.Context())) {
			if told := strings.Contains(n.Trouble, "this machine cannot begin runs, first at ") && strings.Contains(n.Trouble, "too many open files"); told != (n.Name == "a") {
				t.Errorf("%s: trouble %q", n.Name, n.Trouble)
			}
		}
		if n := refused.Load(); n == 0 || n > 20 {
			t.Errorf("the sick node tried %d runs in 15 s", n)
		}
		if err := c.nodes[0].Ready(); err == nil || !strings.Contains(err.Error(), "cannot begin runs") {
			t.Errorf("ready: %v", err)
		}
		sick.Store(false)
		time.Sleep(100 * time.Second)
		to := time.Now().Add(-5 * time.Second)
		if late := s.each(t, list, from, to); late > 5*time.Second {
			t.Errorf("a run began %s late", late)
		}
		if s.ranOn("a", to.Add(-20*time.Second)) == 0 {
			t.Error("the node takes no runs though its machine is well")
		}
		if err := c.nodes[0].Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		s.check(t)
		for _, j := range list {
			for _, r := range c.runs(j.Name) {
				if r.Outcome != jobs.OutcomeSucceeded && r.Outcome != jobs.OutcomeRunning {
					t.Errorf("%s: %s %s", j.Name, r.Outcome, r.Error)
				}
			}
		}
		if c.logs.count("could not begin on this machine; the node takes no runs for a while") == 0 || c.logs.count("runs begin on this machine again") != 1 {
			t.Error("not logged")
		}
	})
}

// Where no other node is, a run that cannot begin waits a little, and has then failed with the
// reason.
func TestMachineThatCannotBeginRunsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var calls atomic.Int64
		c.start("a", scheduler.Config{}, jobs.Job{Name: "one", Schedule: "@every 5m", Func: func(context.Context, *jobs.Run) error {
			calls.Add(1)
			return errFiles
		}})
		time.Sleep(5*time.Minute + 30*time.Second)
		runs := c.runs("one")
		if len(runs) != 1 || runs[0].Outcome != jobs.OutcomeFailed || runs[0].Error != "too many open files" || runs[0].Attempt != 1 || calls.Load() != 4 {
			t.Errorf("%d calls, history %+v", calls.Load(), runs)
		}
	})
}

// A function that has done something in an earlier try has failed, whatever its last try returns.
func TestNodeFaultAfterATry(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.start("a", scheduler.Config{}, jobs.Job{Name: "one", Schedule: "@every 5m", Retry: jobs.Retry{Max: 1, Backoff: time.Second}, Func: func(_ context.Context, r *jobs.Run) error {
			if r.Try() == 1 {
				return errors.New("half done")
			}
			return errFiles
		}})
		time.Sleep(5*time.Minute + 30*time.Second)
		if runs := c.runs("one"); len(runs) != 1 || runs[0].Outcome != jobs.OutcomeFailed || runs[0].Tries != 2 {
			t.Errorf("history %+v", runs)
		}
	})
}
