package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// slowLooks keeps what a sweep has read from it for a while, as a slow road does.
type slowLooks time.Duration

func (slowLooks) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (slowLooks) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d slowLooks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[0].Name() == "zrangebyscore" {
			time.Sleep(time.Duration(d))
		}
		return err
	}
}

// The newer build, in which a job has a schedule, is gone, and a tick of it overdue. A sweep of the older one, in which the job follows
// another, sees that tick just before the older definition is stored again.
func TestScheduleReplacedUnderASweep(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		up, down := eachSecond("up", s), eachSecond("down", s)
		follows := jobs.Job{Name: "down", After: "up", Func: up.Func}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "newer", scheduler.Config{Revision: "2"}, up, down)
		time.Sleep(3 * time.Second)
		client := server.Client()
		client.AddHook(slowLooks(600 * time.Millisecond))
		c.startOver(client, "older", scheduler.Config{Revision: "1"}, up, follows)
		time.Sleep(3 * time.Second)
		network.Cut()
		time.Sleep(20 * time.Second)
		if v := must[scheduler.JobView](t)(c.inspector().Job(t.Context(), "down")); v.After != "up" || v.Next != nil {
			t.Errorf("the older definition does not count: %+v", v)
		}
		network.Heal()
		time.Sleep(5 * time.Second)
	})
}

// A record says that a tick is due of a job that has no schedule.
func TestDueThoughItFollows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		up := eachSecond("up", s)
		c.start("a", scheduler.Config{Partitions: 1}, up, jobs.Job{Name: "down", After: "up", Func: up.Func})
		time.Sleep(3 * time.Second)
		client := server.Client()
		defer client.Close()
		if err := client.ZAdd(t.Context(), "{escapement:0}:due", redisZ(float64(time.Now().UnixMilli()), "down")).Err(); err != nil {
			t.Fatal(err)
		}
		before := len(s.ticks("down"))
		time.Sleep(10 * time.Second)
		if n := len(s.ticks("down")) - before; n < 9 {
			t.Errorf("it ran %d times in 10 s after its upstream, which ticks each second", n)
		}
	})
}
