package scheduler_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

var manyJobs = flag.Int("scheduler.jobs", 1000, "jobs in TestPromoteManyJobs")

// A promotion of many jobs, over 16 partitions of a real Redis, takes a moment; ticks that come due meanwhile run once, and
// soon.
func TestPromoteManyJobs(t *testing.T) {
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	}()
	c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
		return redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	}}
	s := &sink{}
	list, names := secondly(10, s)
	for n := len(list); n < *manyJobs; n++ {
		list = append(list, jobs.Job{Name: fmt.Sprintf("other-%05d", n), Schedule: "@every 24h", TTL: 5 * time.Second,
			Func: func(context.Context, *jobs.Run) error { return nil }})
	}
	c.start("a", scheduler.Config{Generation: "one", DrainTimeout: time.Second}, list...)
	c.settled("one", 0)
	c.start("b", scheduler.Config{Generation: "two", DrainTimeout: time.Second}, list...)
	c.settled("two", *manyJobs)
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1900 * time.Millisecond))) // a tick comes due meanwhile
	began := time.Now()
	p := c.promote("two", scheduler.PromoteOptions{})
	took := time.Since(began)
	if p.Switched.Count != *manyJobs || p.Orphaned.Count+p.Created.Count != 0 {
		t.Errorf("%+v", p)
	}
	time.Sleep(time.Until(began.Add(took).Truncate(time.Second).Add(2500 * time.Millisecond)))
	longest := gap{began.Add(-time.Second), time.Now().Add(-700 * time.Millisecond)}.each(t, s, names...)
	t.Logf("%d jobs were promoted in %s; longest lag %s", *manyJobs, took.Round(time.Millisecond), longest.Round(time.Millisecond))
	if most := 2*time.Second + time.Duration(*manyJobs)*time.Millisecond; took > most {
		t.Errorf("that is longer than %s", most)
	}
	if longest > longestLag {
		t.Errorf("a tick was %s late", longest)
	}
	if got := (gap{began.Add(took), time.Now()}).byLetter(s); got["b"] == 0 {
		t.Errorf("after the promotion %v ran", got)
	}
	c.end()
	s.check(t)
}

// settled waits until a generation has stored its definitions, so many of them beside the active ones.
func (c *cluster) settled(generation string, beside int) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		there := false
		c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
			all, err := i.Generations(ctx)
			for _, g := range all {
				there = there || err == nil && g.Name == generation && g.Jobs == *manyJobs && g.Unsettled.Count == 0 && (beside == 0) == (g.State == scheduler.GenerationActive)
			}
		})
		if there {
			return
		}
	}
	c.t.Fatalf("generation %s has not registered %d jobs in 30 s", generation, *manyJobs)
}
