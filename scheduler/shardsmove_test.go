package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A drained node's shards go to the others without waiting for the grace, and what it runs goes on.
func TestShardsOfADrainedNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		p := &pieces{}
		j := sharded(12, "@every 5s", func(_ context.Context, r *jobs.Run) error {
			p.write(r)
			time.Sleep(time.Second)
			return nil
		})
		for i, name := range []string{"a", "b", "c"} {
			c.start(name, scheduler.Config{}, j)
			time.Sleep(time.Duration(137*(i+1)) * time.Millisecond)
		}
		start := time.Now().Truncate(5 * time.Second).Add(10 * time.Second)
		time.Sleep(time.Until(start.Add(500 * time.Millisecond))) // its shards run
		client := c.client()
		defer client.Close()
		i := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, ""))
		if err := i.DrainNode(t.Context(), "b", scheduler.DrainOptions{Author: "ann", Reason: "to see"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(start.Add(19 * time.Second)))
		c.end()
		for tick, n := range p.check(t) {
			if n != 12 {
				t.Errorf("%s: %d of 12 shards", tick.Format(time.TimeOnly), n)
			}
		}
		for _, r := range p.all() {
			if r.tick.After(start) && r.node == "b" || r.at.Sub(r.tick) > 20*time.Millisecond && r.tick.After(start.Add(-5*time.Second)) {
				t.Errorf("%+v: on the drained node, or late", r)
			}
		}
		for _, r := range c.runs("move") {
			if r.Outcome != "succeeded" && r.Outcome != "running" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Where nodes race for a job, each asks for every shard, and a dead node costs no grace.
func TestShardsThatAreRacedFor(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		p := &pieces{}
		j := sharded(8, "@every 10s", func(_ context.Context, r *jobs.Run) error {
			p.write(r)
			return nil
		})
		j.Placement = jobs.PlacementRace
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, j)
		c.start("b", scheduler.Config{}, j)
		c.start("c", scheduler.Config{}, j)
		start := time.Now().Truncate(10 * time.Second).Add(20 * time.Second)
		time.Sleep(time.Until(start.Add(-time.Second)))
		network.Cut()
		time.Sleep(time.Until(start.Add(9 * time.Second)))
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		if n := p.check(t)[start.UTC()]; n != 8 {
			t.Errorf("%d of 8 shards ran", n)
		}
		for _, r := range p.all() {
			if r.at.Sub(r.tick) > 20*time.Millisecond {
				t.Errorf("%+v: late", r)
			}
		}
	})
}
