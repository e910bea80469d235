package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// atOnce counts functions that run at once.
type atOnce struct {
	mu           sync.Mutex
	running, top int
	runs         int
}

// work is a function that takes d.
func (a *atOnce) work(d time.Duration) jobs.Func {
	return func(ctx context.Context, _ *jobs.Run) error {
		a.add(1)
		defer a.add(-1)
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	}
}

func (a *atOnce) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running += n; n > 0 {
		a.runs++
	}
	a.top = max(a.top, a.running)
}

// counts are the most that ran at once, and all runs.
func (a *atOnce) counts() (top, runs int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.top, a.runs
}

// limited are jobs of one group that tick every ten seconds.
func limited(n, most int, work jobs.Func) (list []jobs.Job) {
	for i := range n {
		list = append(list, jobs.Job{
			Name: fmt.Sprint("job-", i), Schedule: "*/10 * * * * *", TTL: 5 * time.Second, Limit: jobs.Limit{Group: "db", Max: most}, Func: work,
		})
	}
	return list
}

// Of a group's runs, never more than the limit go on at once on all nodes together, and each gets
// its turn.
func TestLimit(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a atOnce
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, scheduler.Config{}, limited(9, 3, a.work(2*time.Second))...)
		}
		time.Sleep(time.Minute)
		top, runs := a.counts()
		if top != 3 {
			t.Errorf("%d ran at once, want 3", top)
		}
		if runs < 5*9 {
			t.Errorf("%d runs in a minute, want 9 in each ten seconds", runs)
		}
		waited := 0
		for i := range 9 {
			for _, r := range c.runs(fmt.Sprint("job-", i)) {
				if r = must[ops.RunView](t)(c.ops().GetRun(t.Context(), r.Run)); strings.Contains(r.Output, "waits for one of the 3 permits of db") {
					waited++
				}
			}
		}
		if waited == 0 {
			t.Error("no run's output says that it waited")
		}
	})
}

// A run that gets no permit within start_within is recorded as missed, with the reason.
func TestLimitStartWithin(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a atOnce
		list := limited(2, 1, a.work(8*time.Second))
		for i := range list {
			list[i].StartWithin = 3 * time.Second
		}
		c.start("a", scheduler.Config{}, list...)
		c.start("b", scheduler.Config{}, list...)
		time.Sleep(65 * time.Second)
		outcomes := make(map[string]int)
		for _, r := range append(c.runs("job-0"), c.runs("job-1")...) {
			n := 1
			if r.Count != nil {
				n = int(*r.Count)
			}
			outcomes[r.Outcome.String()+" "+r.Reason] += n
		}
		if top, _ := a.counts(); top != 1 || outcomes["succeeded "] < 5 || outcomes["missed start_within"] < 4 || len(outcomes) > 3 {
			t.Errorf("%d ran at once; %v", top, outcomes)
		}
	})
}

// A node that drains hands back a run that waits for a permit, and another node runs it.
func TestLimitDrain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{})
		defer locker.Close()
		var a atOnce
		list := limited(1, 2, a.work(time.Second))
		var held []*locking.Lease
		for range 2 {
			held = append(held, must[*locking.Lease](t)(locker.Acquire(t.Context(), "limit:db", locking.Options{Permits: 2})))
		}
		n := c.start("a", scheduler.Config{}, list...)
		time.Sleep(15 * time.Second)
		c.start("b", scheduler.Config{}, list...)
		c.leave(n)
		if _, ran := a.counts(); ran != 0 {
			t.Fatalf("%d runs without a permit", ran)
		}
		free(t, held[0])
		time.Sleep(3 * time.Second)
		_, ran := a.counts()
		if runs := c.runs("job-0"); ran != 1 || len(runs) == 0 || runs[len(runs)-1].Node != "b" {
			t.Errorf("%d runs: %+v", ran, runs)
		}
		free(t, held[1])
	})
}

// A run whose permit is lost ends, as with its lease.
func TestPermitLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		var a atOnce
		c.start("a", scheduler.Config{}, limited(1, 2, a.work(time.Minute))...)
		time.Sleep(11 * time.Second)
		for _, key := range must[[]string](t)(client.Keys(t.Context(), "*limit:db*").Result()) {
			must[int64](t)(client.Del(t.Context(), key).Result())
		}
		time.Sleep(8 * time.Second)
		for _, r := range c.runs("job-0") {
			if r.Outcome == jobs.OutcomeLost {
				return
			}
		}
		t.Errorf("no run is lost: %+v", c.runs("job-0"))
	})
}

// A job with a guard runs only under that lock, and its token is the guard's.
func TestGuard(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		elsewhere := must[*redistest.Embedded](t)(redistest.Embed())
		defer elsewhere.Close()
		client := elsewhere.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{Namespace: "guards"})
		defer locker.Close()
		held := must[*locking.Lease](t)(locker.Acquire(t.Context(), "job", locking.Options{}))
		var mu sync.Mutex
		var tokens []int64
		j := jobs.Job{Name: "job", Schedule: "*/5 * * * * *", TTL: 5 * time.Second, Guard: "other", Func: func(_ context.Context, r *jobs.Run) error {
			mu.Lock()
			defer mu.Unlock()
			tokens = append(tokens, r.Token())
			return nil
		}}
		cfg := scheduler.Config{Guards: map[string]*locking.Locker{"other": locker}}
		c.start("a", cfg, j)
		time.Sleep(12 * time.Second)
		mu.Lock()
		ran := len(tokens)
		mu.Unlock()
		if ran > 0 {
			t.Fatal("it ran while somebody else held the guard")
		}
		free(t, held)
		time.Sleep(20 * time.Second)
		c.end()
		mu.Lock()
		defer mu.Unlock()
		last := must[locking.Ownership](t)(locker.Owner(t.Context(), "job"))
		if len(tokens) < 3 || last.Held() {
			t.Fatalf("%d runs; the guard is held: %v", len(tokens), last.Held())
		}
		after := must[*locking.Lease](t)(locker.Acquire(t.Context(), "job", locking.Options{}))
		for i, token := range append([]int64{held.Token()}, tokens...) {
			if next := append(tokens, after.Token())[i]; token >= next || next > after.Token() {
				t.Errorf("token %d, then %d; those of the lock end with %d", token, next, after.Token())
			}
		}
		free(t, after)
	})
}

// A guard that the node does not have, and groups with two limits, are refused.
func TestGuardsAndLimitsRefused(t *testing.T) {
	server := must[*redistest.Embedded](t)(redistest.Embed())
	defer server.Close()
	client := server.Client()
	defer client.Close()
	noop := func(context.Context, *jobs.Run) error { return nil }
	for want, list := range map[string][]jobs.Job{
		`job a: there is no guard "paper"`: {{Name: "a", Schedule: "@hourly", Guard: "paper", Func: noop}},
		`job "b": limit.max: 3, and 2 at job "a"`: {
			{Name: "a", Schedule: "@hourly", Limit: jobs.Limit{Group: "g", Max: 2}, Func: noop},
			{Name: "b", Schedule: "@hourly", Limit: jobs.Limit{Group: "g", Max: 3}, Func: noop},
		},
	} {
		reg := jobs.NewRegistry()
		for _, j := range list {
			reg.MustAdd(j)
		}
		if _, err := scheduler.New(client, reg, scheduler.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// free releases a lease.
func free(t *testing.T, l *locking.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Runs that wait for minutes get their permits in the order in which they came.
func TestLimitOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{})
		defer locker.Close()
		held := must[*locking.Lease](t)(locker.Acquire(t.Context(), "limit:db", locking.Options{}))
		began := make(chan string, 2)
		list := limited(2, 1, func(_ context.Context, r *jobs.Run) error { began <- r.Job(); return nil })
		list[0].Schedule, list[1].Schedule = "10 0 * * * *", "50 0 * * * *" // the clock begins at a full hour
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(80 * time.Second) // the first run waits for 70 s, the second for 30 s
		free(t, held)
		if first, second := <-began, <-began; first != "job-0" || second != "job-1" {
			t.Errorf("%s came before %s", first, second)
		}
	})
}

// A job and a node with the longest names that they may have get a permit.
func TestLimitLongNames(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var a atOnce
		list := limited(1, 1, a.work(time.Second))
		list[0].Name = strings.Repeat("j", 128)
		c.start(strings.Repeat("n", 128), scheduler.Config{}, list...)
		time.Sleep(15 * time.Second)
		if _, runs := a.counts(); runs == 0 {
			t.Error("no run")
		}
	})
}

// A run that follows another job keeps its place in the queue beyond its start_within.
func TestLimitAfter(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{})
		defer locker.Close()
		held := must[*locking.Lease](t)(locker.Acquire(t.Context(), "limit:db", locking.Options{}))
		var a atOnce
		list := limited(1, 1, a.work(time.Second))
		list[0].Schedule, list[0].After, list[0].StartWithin = "", []string{"first"}, 3*time.Second
		first := jobs.Job{Name: "first", Schedule: "10 0 * * * *", Func: func(context.Context, *jobs.Run) error { return nil }}
		c.start("a", scheduler.Config{}, append(list, first)...)
		time.Sleep(30 * time.Second)
		free(t, held)
		time.Sleep(3 * time.Second)
		if _, runs := a.counts(); runs != 1 || c.logs.count("run handed back") > 0 {
			t.Errorf("%d runs, %d handed back", runs, c.logs.count("run handed back"))
		}
	})
}

// A run whose guard is refused tries again once a second, and does not log each time.
func TestGuardRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{Namespace: "guards"})
		defer locker.Close()
		const key = "{guards:lock:job-0}"
		must[int64](t)(client.RPush(t.Context(), key, "not a lock").Result())
		var a atOnce
		list := limited(1, 1, a.work(time.Second))
		list[0].Limit, list[0].Guard = jobs.Limit{}, "other"
		c.start("a", scheduler.Config{Guards: map[string]*locking.Locker{"other": locker}}, list...)
		time.Sleep(30 * time.Second)
		if _, runs := a.counts(); runs != 0 || c.logs.count("a run still waits") != 1 {
			t.Errorf("%d runs, %d lines about the wait", runs, c.logs.count("a run still waits"))
		}
		must[int64](t)(client.Del(t.Context(), key).Result())
		time.Sleep(3 * time.Second)
		if _, runs := a.counts(); runs == 0 {
			t.Error("no run")
		}
	})
}
