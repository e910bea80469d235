package scheduler_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Promoted, promoted back and promoted again, a job that one generation lacks is an orphan each time, and the other one's
// list shows that it would run again.
func TestPromoteAgainCountsOrphans(t *testing.T) {
	frozen(t, func(c *cluster, _ *redistest.Embedded, _ func()) {
		for n, x := range []struct{ generation, orphan, other string }{{"two", "leaves", "one"}, {"one", "comes", "two"}, {"two", "leaves", "one"}} {
			p, err := c.promoteKilled(&killer{}, x.generation, scheduler.PromoteOptions{})
			if err != nil || strings.Join(p.Orphaned.First, " ") != x.orphan || p.Switched.Count+p.Created.Count != 6 || p.LeftOut.Count != 0 {
				c.t.Errorf("promotion %d: %+v, %v", n+1, p, err)
			}
			c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
				list, err := i.Generations(ctx)
				if err != nil || len(list) != 2 {
					c.t.Fatalf("%+v, %v", list, err)
				}
				for _, g := range list {
					added, removed, running := x.orphan, "", 0
					if g.Name == x.generation {
						added, removed, running = "", x.orphan, 6
					} else if n > 0 || g.Name == "one" {
						removed = map[string]string{"leaves": "comes", "comes": "leaves"}[x.orphan]
					}
					if strings.Join(g.Added.First, " ") != added || strings.Join(g.Removed.First, " ") != removed || g.Running != running {
						c.t.Errorf("after promotion %d, %s: added %v, removed %v, running %d", n+1, g.Name, g.Added, g.Removed, g.Running)
					}
				}
			})
		}
	})
}

// slowReader waits before each command that is no script: nodes are quicker than its promotion.
type slowReader struct{}

func (slowReader) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (slowReader) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			time.Sleep(3 * time.Second)
		}
		return next(ctx, cmd)
	}
}

func (slowReader) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A new job that the generation's nodes make while its promotion is under way is counted as created.
func TestPromoteCountsWhatNodesCreate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		both, comes := eachSecond("both", s), eachSecond("comes", s)
		c.start("a", scheduler.Config{Generation: "one"}, both)
		time.Sleep(3 * time.Second)
		c.start("b", scheduler.Config{Generation: "two"}, both, comes)
		time.Sleep(4 * time.Second)
		client := c.client()
		defer client.Close()
		client.AddHook(slowReader{})
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p, err := i.Promote(context.Background(), "two", scheduler.PromoteOptions{})
		if err != nil || strings.Join(p.Created.First, " ") != "comes" || p.Created.Count != 1 || p.Switched.Count != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		if ticks := s.ticks("comes"); len(ticks) == 0 || time.Since(began) < 6*time.Second {
			t.Errorf("the nodes were not quicker: %v", ticks)
		}
	})
}
