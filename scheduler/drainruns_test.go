package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/sharding"
)

// What runs when the node is drained runs on, however long, and a stop waits for it as ever. What would have
// been next on the node goes to others.
func TestDrainLeavesRunsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		long := jobs.Job{Name: "long", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(ctx context.Context, r *jobs.Run) error {
			s.write(r)
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		a := c.start("a", scheduler.Config{}, long)
		time.Sleep(3 * time.Second)
		id := must[string](t)(i.Trigger(ctx, "long", scheduler.TriggerOptions{}))
		time.Sleep(time.Second)
		if err := i.DrainNode(ctx, "a", scheduler.DrainOptions{Author: "ann"}); err != nil {
			t.Fatal(err)
		}
		waits := must[string](t)(i.Trigger(ctx, "long", scheduler.TriggerOptions{}))
		time.Sleep(10 * time.Second)
		if v := view(t, i, "a"); v.Running != 1 || v.State != "draining" || must[bool](t)(i.NodeRests(ctx, "a")) {
			t.Errorf("got %+v", v)
		}
		client := c.client()
		defer client.Close()
		roster := sharding.NewRoster(client, sharding.RosterConfig{})
		if err := roster.Leave(ctx, a.ID()); err != nil {
			t.Fatal(err)
		}
		if must[bool](t)(i.NodeRests(ctx, "a")) {
			t.Error("a run of a node that is gone goes on, and yet it rests")
		}
		if r := must[scheduler.RunView](t)(i.Wait(ctx, id)); r.Outcome != "succeeded" || r.Node != "a" {
			t.Errorf("got %+v", r)
		}
		time.Sleep(3 * time.Second)
		if r := must[scheduler.RunView](t)(i.Run(ctx, waits)); r.Reason != "pending: no living node can run the job" {
			t.Errorf("got %+v", r)
		}
		if !must[bool](t)(i.NodeRests(ctx, "a")) {
			t.Errorf("it does not rest: %+v", view(t, i, "a"))
		}
		b := c.start("b", scheduler.Config{}, long)
		time.Sleep(3 * time.Second)
		if r := must[scheduler.RunView](t)(i.Run(ctx, waits)); r.Node != "b" {
			t.Errorf("got %+v", r)
		}
		if err := i.DrainNode(ctx, "b", scheduler.DrainOptions{Author: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		c.leave(a)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a node at rest took %s to stop", took)
		}
		c.leave(b)
		if r := must[scheduler.RunView](t)(i.Run(ctx, waits)); r.Outcome != "succeeded" {
			t.Errorf("got %+v", r)
		}
	})
}

// A node that does not answer keeps a drained one from handing over for two seconds, no longer; and late
// ticks of the dead one's jobs, which wait here for a slot, are left to others.
func TestDrainBesideADeadNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		var list []jobs.Job
		for k := range 10 {
			list = append(list, eachSecond(fmt.Sprintf("job-%d", k), s))
		}
		long := jobs.Job{Name: "long", Schedule: "@yearly", TTL: 5 * time.Second, Labels: map[string]string{"on": "b"}, Func: func(context.Context, *jobs.Run) error {
			time.Sleep(3500 * time.Millisecond)
			return nil
		}}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "dead", scheduler.Config{DrainTimeout: time.Second}, append(list, long)...)
		c.start("b", scheduler.Config{MaxRunning: 1, Labels: long.Labels}, append(list, long)...)
		time.Sleep(4*time.Second + 50*time.Millisecond)
		owner := make(map[string]string)
		for _, v := range must[[]scheduler.JobView](t)(i.Jobs(ctx)) {
			owner[v.Name] = v.Owner
		}
		network.Cut()
		must[string](t)(i.Trigger(ctx, "long", scheduler.TriggerOptions{}))
		time.Sleep(1900 * time.Millisecond) // ticks of the dead node's jobs are late by more than the grace
		if err := i.DrainNode(ctx, "b", scheduler.DrainOptions{Author: "ann"}); err != nil {
			t.Fatal(err)
		}
		drained := time.Now()
		time.Sleep(1900 * time.Millisecond) // the run has ended, and the dead node is still in the roster
		if v := view(t, i, "dead"); v.State != "active" {
			t.Errorf("got %+v", v)
		}
		own := 0
		for _, r := range s.all() {
			if r.at.After(drained.Add(time.Second)) && owner[r.job] == "b" {
				own++
			}
			if r.at.After(drained.Add(time.Second)) && owner[r.job] != "b" {
				t.Errorf("%s ran %s of %s at %s", r.node, r.job, r.tick, r.at)
			}
		}
		if own == 0 {
			t.Error("what the node owns stood still before anybody could take it over")
		}
		time.Sleep(700 * time.Millisecond)
		if v, dead := view(t, i, "b"), view(t, i, "dead"); v.Owned != 0 || dead.State != "active" {
			t.Errorf("it has not handed over: %+v, %+v", v, dead)
		}
		network.Heal()
		time.Sleep(5 * time.Second)
		c.end()
		s.check(t)
	})
}
