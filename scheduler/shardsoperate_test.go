package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

func TestPartialFailureIsRunAgainByShard(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		p := &pieces{}
		var mend sync.Once
		mended := make(chan struct{})
		c.start("a", scheduler.Config{}, sharded(4, "@every 1m", func(_ context.Context, r *jobs.Run) error {
			p.write(r)
			select {
			case <-mended:
			default:
				if r.Shard() == 2 {
					return errors.New("no")
				}
			}
			return nil
		}))
		time.Sleep(time.Minute + time.Second)
		client := c.client()
		defer client.Close()
		i := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, ""))
		var failed, whole scheduler.RunView
		for _, r := range c.runs("move") {
			switch {
			case r.Whole:
				whole = r
			case r.Outcome == "failed":
				failed = r
			}
		}
		if whole.Outcome != "failed" || whole.Reason != "1 of 4 shards did not succeed" || failed.Shard != 2 || failed.Of != whole.Run {
			t.Fatalf("the tick: %+v\nthe shard: %+v", whole, failed)
		}
		mend.Do(func() { close(mended) })
		ctx := t.Context()
		id := must[string](t)(i.Rerun(ctx, failed.Run))
		v := must[scheduler.RunView](t)(i.Wait(ctx, id))
		if v.Outcome != "succeeded" || v.Shard != 2 || v.Shards != 4 || v.Attempt != 2 {
			t.Errorf("run again: %+v", v)
		}
		id = must[string](t)(i.Rerun(ctx, whole.Run))
		v = must[scheduler.RunView](t)(i.Wait(ctx, id))
		if !v.Whole || v.Outcome != "succeeded" || v.Attempt != 3 {
			t.Errorf("the tick as a whole: %+v", v)
		}
		p.check(t)
		if n := len(p.all()); n != 4+1+4 {
			t.Errorf("%d shards ran", n)
		}
	})
}

// A run by hand of a sharded job is all its shards, and what asks for it waits for the last.
func TestShardsByHand(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		p := &pieces{}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{MaxRunning: 1}, sharded(5, "@every 1h", func(ctx context.Context, r *jobs.Run) error {
				p.write(r)
				select {
				case <-time.After(time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}))
		}
		time.Sleep(3 * time.Second)
		client := c.client()
		defer client.Close()
		i, ctx := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, "")), t.Context()
		began := time.Now()
		id := must[string](t)(i.Trigger(ctx, "move", scheduler.TriggerOptions{Payload: []byte(`{"a":1}`)}))
		time.Sleep(700 * time.Millisecond)
		if v := must[scheduler.RunView](t)(i.Run(ctx, id)); !v.Whole || v.Outcome != "running" || v.Reason != "5 of 5 shards to end" {
			t.Errorf("while it runs: %+v", v)
		}
		v := must[scheduler.RunView](t)(i.Wait(ctx, id))
		if took := time.Since(began); !v.Whole || v.Outcome != "succeeded" || string(v.Payload) != `{"a":1}` || took > 6*time.Second {
			t.Errorf("after %s: %+v", took, v)
		}
		if len(p.all()) != 5 {
			t.Errorf("%d shards ran", len(p.all()))
		}
		for _, r := range p.all() {
			if r.payload != `{"a":1}` {
				t.Errorf("%+v", r)
			}
		}
		id = must[string](t)(i.Trigger(ctx, "move", scheduler.TriggerOptions{}))
		time.Sleep(700 * time.Millisecond) // two run, three wait for a slot
		must[scheduler.Cancellation](t)(i.Cancel(ctx, id, scheduler.CancelOptions{Author: "ann"}))
		v = must[scheduler.RunView](t)(i.Wait(ctx, id))
		if v.Outcome != "cancelled" || v.Reason != "5 of 5 shards did not succeed" {
			t.Errorf("cancelled: %+v", v)
		}
		p.check(t)
	})
}
