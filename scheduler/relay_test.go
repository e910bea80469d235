package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// words counts the calls with which a client's node tells jobs of those that they follow, by who is told.
type words struct{ live, old atomic.Int64 }

func (w *words) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *words) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && len(args) > 14 && strings.HasSuffix(fmt.Sprint(args[10]), ":outbox") {
			switch args[14] {
			case "live":
				w.live.Add(1)
			case "old":
				w.old.Add(1)
			}
		}
		return next(ctx, cmd)
	}
}

func (w *words) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A deploy drops a job that follows another one. Each success of that one waits half a minute for it, and those who are there
// hear of it once from each node. When a node with the dropped job comes back in time, it is told at once.
func TestFollowerThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		upstream, live := eachSecond("upstream", s), jobs.Job{Name: "live", After: "upstream", Func: eachSecond("", s).Func, Overlap: jobs.OverlapQueue}
		old := jobs.Job{Name: "old", After: "upstream", Func: eachSecond("", s).Func, Overlap: jobs.OverlapQueue}
		first := c.start("v1", scheduler.Config{Revision: "1"}, upstream, live, old)
		time.Sleep(5 * time.Second)
		c.leave(first)
		var w words
		for i := range 3 {
			client := server.Client()
			client.AddHook(&w)
			c.startOver(client, fmt.Sprintf("v2-%d", i), scheduler.Config{Revision: "2"}, upstream, live)
		}
		time.Sleep(40 * time.Second)
		before, liveBefore, oldBefore := len(s.ticks("live")), w.live.Load(), w.old.Load()
		time.Sleep(20 * time.Second)
		ran, told, missed := len(s.ticks("live"))-before, w.live.Load()-liveBefore, w.old.Load()-oldBefore
		if ran < 19 || told > int64(3*(ran+1)) || missed > int64(3*(ran+1)) {
			t.Errorf("%d ticks: the follower that lives was told %d times, the one that is gone %d times", ran, told, missed)
		}
		if n := strings.Count(c.logs.String(), "no living node holds this job, which follows another one"); n < 1 || n > 3 {
			t.Errorf("said %d times that nobody holds it, want once for each node", n)
		}
		had := len(s.ticks("old"))
		back := time.Now()
		c.start("v1-again", scheduler.Config{Revision: "1"}, upstream, live, old)
		time.Sleep(5 * time.Second)
		if ran := len(s.ticks("old")) - had; ran < 25 {
			t.Errorf("%d ticks ran that had waited for it", ran)
		}
		for _, r := range s.all() {
			if r.job == "old" && r.at.After(back) && back.Sub(r.tick) > 32*time.Second {
				t.Errorf("it ran for %s, %s before it was back", r.tick, back.Sub(r.tick))
			}
		}
	})
}

// A deploy stops the old nodes, and starts the new ones a minute later, some milliseconds from Redis and with many jobs to store. A tick of
// the upstream has ended in the drain, and they bring another definition of the follower: it has not missed the tick.
func TestFollowerIsReplacedWhileWordWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		upstream := jobs.Job{Name: "upstream", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error {
			time.Sleep(5 * time.Second)
			return nil
		}}
		follower := jobs.Job{Name: "follower", After: "upstream", Func: eachSecond("", s).Func}
		time.Sleep(59*time.Minute + 50*time.Second)
		first := c.start("v1", scheduler.Config{Partitions: 1, Revision: "1", DrainTimeout: 10 * time.Second}, upstream, follower)
		time.Sleep(12 * time.Second)
		c.leave(first)
		time.Sleep(time.Minute)
		var list []jobs.Job
		for i := range 2000 {
			list = append(list, jobs.Job{Name: fmt.Sprint("job-", i), Schedule: "@yearly", Func: follower.Func})
		}
		follower.Timeout = time.Minute
		var network redistest.Net
		network.Delay(10 * time.Millisecond)
		c.startOver(network.Client(server.Options()), "v2", scheduler.Config{Partitions: 1, Revision: "2"}, append(list, upstream, follower)...)
		time.Sleep(10 * time.Second)
		c.end()
		if n := len(s.ticks("follower")); n != 1 {
			t.Errorf("it ran %d times: %+v", n, c.runs("follower"))
		}
	})
}
