package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// sharded is a job whose shards last, unless their context ends before.
func sharded(shards int, schedule string, s *sink, d time.Duration) jobs.Job {
	return jobs.Job{Name: "wide", Schedule: schedule, TTL: 5 * time.Second, Shards: shards, Func: func(ctx context.Context, r *jobs.Run) error {
		s.write(r)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// whole is the row of a job's latest tick as a whole.
func (c *cluster) whole(job string) ops.RunView {
	c.t.Helper()
	rows := c.runs(job)
	at := slices.IndexFunc(rows, func(r ops.RunView) bool { return r.Whole })
	if at < 0 {
		c.t.Fatalf("no tick of %s is recorded as a whole", job)
	}
	return rows[at]
}

// The shards of a tick run at once, spread over the nodes, each with its parameter. Where nodes
// race for a job the death of one costs no grace.
func TestShardsRunAtOnceOnAllNodes(t *testing.T) {
	for _, placement := range []jobs.Placement{jobs.PlacementOwner, jobs.PlacementRace} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			j := sharded(16, "@every 10s", s, time.Second)
			j.Placement = placement
			for shard := range 16 {
				j.Params = append(j.Params, fmt.Sprintf("part %d, of |16", shard))
			}
			var network redistest.Net
			c.startOver(network.Client(server.Options()), "a", scheduler.Config{DrainTimeout: time.Second}, j)
			c.start("b", scheduler.Config{}, j)
			c.start("c", scheduler.Config{}, j)
			time.Sleep(29 * time.Second)
			if placement == jobs.PlacementRace {
				network.Cut()
			}
			time.Sleep(6 * time.Second)
			network.Heal()
			time.Sleep(2 * time.Second)
			c.end()
			s.check(t)
			byNode, byTick := make(map[string]int), make(map[time.Time]int)
			for _, r := range s.all() {
				byTick[r.tick]++
				byNode[r.tick.String()+r.node]++
				if r.at.Sub(r.tick) > onTime || r.param != j.Params[r.shard] {
					t.Errorf("%+v: late, or the wrong parameter", r)
				}
			}
			for tick, n := range byTick {
				if n != 16 || len(byTick) != 3 {
					t.Errorf("%s: %d of 16 shards, of %d ticks", tick, n, len(byTick))
				}
			}
			for where, n := range byNode {
				if n > 7 && placement == jobs.PlacementOwner { // 115 % of a third, rounded up
					t.Errorf("%s runs %d shards of one tick", where, n)
				}
			}
			if r := c.whole("wide"); r.Outcome != jobs.OutcomeSucceeded || r.Shards != 16 || r.Duration.Milliseconds() < 1000 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A manual run of a sharded job runs all its shards, and WaitRun waits for the last. A shard that
// failed can be run again alone, and so can the whole.
func TestShardsByHand(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		j := sharded(5, "@every 1h", s, time.Second)
		works, fails := j.Func, true
		j.Func = func(ctx context.Context, r *jobs.Run) error {
			if err := works(ctx, r); err != nil || r.Shard() != 2 || !fails {
				return err
			}
			return errors.New("no")
		}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{MaxRunning: 1}, j)
		}
		time.Sleep(3 * time.Second)
		i, ctx := c.ops(), t.Context()
		wait := func(id string) ops.RunView { return must[ops.RunView](t)(i.WaitRun(ctx, id)) }
		id := must[string](t)(i.Trigger(ctx, "wide", ops.TriggerOptions{Payload: []byte(`{"a":1}`)}))
		time.Sleep(700 * time.Millisecond)
		if v := must[ops.RunView](t)(i.GetRun(ctx, id)); !v.Whole || v.Outcome != jobs.OutcomeRunning || v.Reason != "5 of 5 shards to end" {
			t.Errorf("while it runs: %+v", v)
		}
		if v := wait(id); v.Outcome != jobs.OutcomeFailed || v.Reason != "1 of 5 shards did not succeed" || string(v.Payload) != `{"a":1}` || len(s.all()) != 5 {
			t.Errorf("%d shards ran: %+v", len(s.all()), v)
		}
		fails = false
		for _, r := range c.runs("wide") {
			if r.Outcome == jobs.OutcomeFailed && !r.Whole {
				if v := wait(must[string](t)(i.Rerun(ctx, r.Run))); v.Outcome != jobs.OutcomeSucceeded || v.Shard != 2 || v.Shards != 5 || v.Attempt != 2 || r.Of != id {
					t.Errorf("run again: %+v", v)
				}
			}
		}
		if v := wait(must[string](t)(i.Rerun(ctx, id))); !v.Whole || v.Outcome != jobs.OutcomeSucceeded || v.Attempt != 3 || len(s.all()) != 5+1+5 {
			t.Errorf("%d shards ran, the tick as a whole: %+v", len(s.all()), v)
		}
		id = must[string](t)(i.Trigger(ctx, "wide", ops.TriggerOptions{}))
		time.Sleep(700 * time.Millisecond) // two run, three wait for a slot
		must[ops.Cancellation](t)(i.Cancel(ctx, id, ops.CancelOptions{Author: "ann"}))
		if v := wait(id); v.Outcome != jobs.OutcomeCancelled || v.Reason != "5 of 5 shards did not succeed" {
			t.Errorf("cancelled: %+v", v)
		}
	})
}

// A big tick hides no other pending run from a node that may not take its shards, and puts off no
// other job's tick on a node that works them off one by one (P6).
func TestShardsHideNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		big, s := &sink{}, &sink{}
		on := func(node string, j jobs.Job) jobs.Job {
			j.Labels = map[string]string{"on": node}
			return j
		}
		wide := on("a", sharded(256, "@yearly", big, 100*time.Millisecond))
		ticks, hand := on("a", eachSecond("ticks", s)), on("b", eachSecond("hand", s))
		ticks.Schedule, hand.Schedule = "@every 2s", "@yearly"
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{Partitions: 1, MaxRunning: 1, HistoryKeep: 1000, Labels: map[string]string{"on": name}}, wide, ticks, hand)
		}
		time.Sleep(3 * time.Second)
		i, ctx := c.ops(), t.Context()
		whole := must[string](t)(i.Trigger(ctx, "wide", ops.TriggerOptions{}))
		time.Sleep(2 * time.Second)
		from := time.Now()
		id := must[string](t)(i.Trigger(ctx, "hand", ops.TriggerOptions{}))
		time.Sleep(10 * time.Second)
		if v := must[ops.RunView](t)(i.GetRun(ctx, id)); v.Outcome != jobs.OutcomeSucceeded || v.Lag.Milliseconds() > 2000 {
			t.Errorf("the run by hand: %+v", v)
		}
		n := 0
		for _, r := range s.all() {
			if r.job == "ticks" && r.tick.After(from) {
				if n++; r.at.Sub(r.tick) > time.Second {
					t.Errorf("%s of the other job started %s late", r.tick, r.at.Sub(r.tick))
				}
			}
		}
		if n < 4 || len(big.all()) < 50 || len(big.all()) == 256 {
			t.Errorf("%d ticks of the other job, %d shards", n, len(big.all()))
		}
		must[ops.Cancellation](t)(i.Cancel(ctx, whole, ops.CancelOptions{}))
		time.Sleep(5 * time.Second)
	})
}
