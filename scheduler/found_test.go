package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// More runs wait for one job than a node looks at, and they hide no run of another job (P6).
func TestBacklogHidesNoOtherJob(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		free := eachSecond("free", s)
		free.Schedule = "@yearly"
		held := jobs.Job{Name: "held", Schedule: "@yearly", TTL: 5 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		c.start("a", scheduler.Config{Partitions: 1, DrainTimeout: time.Second}, free, held)
		time.Sleep(3 * time.Second)
		i, ctx := c.ops(), t.Context()
		for range 1100 {
			must[string](t)(i.Trigger(ctx, held.Name, ops.TriggerOptions{}))
		}
		time.Sleep(time.Second)
		must[string](t)(i.Trigger(ctx, free.Name, ops.TriggerOptions{}))
		time.Sleep(3 * time.Second)
		if n := len(s.all()); n != 1 {
			t.Errorf("%d runs of the job that nothing holds, want 1", n)
		}
	})
}
