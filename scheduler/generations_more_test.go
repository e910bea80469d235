package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// With shards, with a job that follows, and over a slow line: all shards and followers of all ticks run once.
func TestPromoteShardsAndFollowers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s, parts := &sink{}, newTally()
		wide, next := eachSecond("wide", s), eachSecond("next", s)
		wide.Overlap = jobs.OverlapQueue // a shard that another node takes is late enough for the next tick to meet it
		wide.Shards, wide.Func = 4, func(_ context.Context, r *jobs.Run) error {
			parts.add(r.Tick(), r.Shard())
			time.Sleep(150 * time.Millisecond)
			return nil
		}
		next.Schedule, next.After = "", "lead"
		list := []jobs.Job{wide, eachSecond("lead", s), next}
		c.startThree(server, "a", "one", list...)
		time.Sleep(3 * time.Second)
		wide.TTL = 6 * time.Second // not the same definition
		c.startThree(server, "b", "two", append([]jobs.Job{wide}, list[1:]...)...)
		time.Sleep(4*time.Second + 300*time.Millisecond)
		began := time.Now()
		var network redistest.Net
		network.Delay(15 * time.Millisecond)
		slow := network.Client(server.Options())
		i, err := scheduler.NewInspector(slow, "")
		if err != nil {
			t.Fatal(err)
		}
		for n := range 9 {
			sent := time.Now()
			if _, err := i.Promote(context.Background(), []string{"two", "one"}[n%2], scheduler.PromoteOptions{}); err != nil {
				t.Error(err)
			}
			if n == 0 {
				t.Logf("a promotion takes %s over that line", time.Since(sent))
			}
			time.Sleep(time.Second + time.Duration(n)*130*time.Millisecond)
		}
		end := time.Now()
		time.Sleep(4 * time.Second)
		_ = slow.Close()
		// Shards that others run, and followers, wait for a sweep at any time.
		before, after := gap{began.Add(-3 * time.Second), began}, gap{began, end}
		for _, name := range []string{"lead", "next"} {
			longest := after.each(t, s, name)
			t.Logf("%s was %s late at most, and %s before the promotions", name, longest, before.each(t, s, name))
			if longest > longestLag {
				t.Errorf("%s was %s late", name, longest)
			}
		}
		longest := parts.each(t, began, end, 4)
		t.Logf("a shard was %s late at most, and %s before the promotions", longest, parts.each(t, before.from, before.to, 4))
		if longest > longestLag {
			t.Errorf("a shard was %s late", longest)
		}
		c.end()
		s.check(t)
	})
}

// A pattern gives some jobs to the other generation; the active one stays, and makes new jobs.
func TestPromoteByPattern(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list, names := secondly(12, s)
		c.startThree(server, "a", "one", list...)
		time.Sleep(3 * time.Second)
		c.startThree(server, "b", "two", list...)
		time.Sleep(3*time.Second + 700*time.Millisecond)
		began := time.Now()
		p := c.promote("two", scheduler.PromoteOptions{Pattern: "job-0*"})
		if p.Switched.Count != 10 || p.Orphaned.Count != 0 || p.Epoch != 1 {
			t.Errorf("%+v", p)
		}
		if p = c.promote("two", scheduler.PromoteOptions{Pattern: "job-0*"}); !p.Nothing() || p.Epoch != 1 {
			t.Errorf("repeated: %+v", p)
		}
		time.Sleep(6 * time.Second)
		for _, r := range s.all() {
			if r.tick.After(began.Add(longestLag)) && (r.node[:1] == "b") != strings.HasPrefix(r.job, "job-0") {
				t.Errorf("%s ran on %s", r.job, r.node)
			}
		}
		c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
			g, err := i.Generations(ctx)
			if err != nil || len(g) != 2 || g[0].State != "active" || g[0].Running != 2 || g[1].State != "standby" || g[1].Running != 10 || g[0].Jobs != 12 || g[1].Jobs != 12 {
				t.Errorf("%+v, %v", g, err)
			}
		})
		late := append(list, eachSecond("late", s))
		c.start("b9", scheduler.Config{Generation: "two"}, late...)
		time.Sleep(3 * time.Second)
		if n := len(s.ticks("late")); n != 0 {
			t.Error("a generation that is not active made a new job")
		}
		c.start("a9", scheduler.Config{Generation: "one"}, late...)
		time.Sleep(5 * time.Second)
		if n := len(s.ticks("late")); n < 3 {
			t.Errorf("the active generation's new job ran %d times", n)
		}
		if longest := (gap{began.Add(-2 * time.Second), time.Now().Add(-2 * time.Second)}).each(t, s, names...); longest > longestLag {
			t.Errorf("a tick was %s late", longest)
		}
		c.end()
		s.check(t)
	})
}

// What runs holds its lease over a promotion, so nothing overlaps; with CancelRunning it is told to end.
func TestPromoteWhileSomethingRuns(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
			var running, most atomic.Int64
			var ended atomic.Pointer[error]
			long := jobs.Job{Name: "long", Schedule: "@every 2s", TTL: 5 * time.Second, Overlap: jobs.OverlapQueue, Func: func(ctx context.Context, r *jobs.Run) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				select {
				case <-time.After(9 * time.Second):
					return nil
				case <-ctx.Done():
					cause := context.Cause(ctx)
					ended.Store(&cause)
					return ctx.Err()
				}
			}}
			c.start("a", scheduler.Config{Generation: "one"}, long)
			time.Sleep(3 * time.Second)
			c.start("b", scheduler.Config{Generation: "two"}, long)
			time.Sleep(2 * time.Second)
			p := c.promote("two", scheduler.PromoteOptions{CancelRunning: cancel, Author: "me"})
			if got := p.Cancelled; (got == 1) != cancel {
				t.Errorf("%d runs were cancelled", got)
			}
			began := time.Now()
			time.Sleep(2 * time.Second)
			if cause := ended.Load(); (cause != nil) != cancel || cancel && !errors.Is(*cause, jobs.ErrCancelled) {
				t.Errorf("cancel %v: the run ended with %v", cancel, cause)
			}
			for i := range 20 {
				time.Sleep(time.Second)
				if cancel && i == 3 && p.Cancelled == 1 { // again: it ends nothing that the new generation runs
					if again := c.promote("two", scheduler.PromoteOptions{CancelRunning: true}); again.Cancelled != 0 {
						t.Errorf("%d runs of the promoted generation were cancelled", again.Cancelled)
					}
				}
			}
			if most.Load() != 1 {
				t.Errorf("%d at once", most.Load())
			}
			var onB int
			for _, r := range c.runs("long") {
				if r.Node == "b" && r.Started != nil && time.Time(*r.Started).After(began) {
					onB++
				}
			}
			if onB == 0 {
				t.Error("the promoted generation ran nothing")
			}
		})
	}
}

func (c *cluster) job(name string) (v scheduler.JobView) {
	c.t.Helper()
	c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
		var err error
		if v, err = i.Job(ctx, name); err != nil {
			c.t.Error(err)
		}
	})
	return v
}

// Wrong input is refused, with what to do next, and changes nothing.
func TestPromoteRefuses(t *testing.T) {
	frozen(t, func(c *cluster, server *redistest.Embedded, back func()) {
		before := ledgerOf(server)
		for _, x := range []struct {
			generation, says string
			o                scheduler.PromoteOptions
		}{
			{"three", `there are "one", "two"`, scheduler.PromoteOptions{}},
			{"three", `start a node of it first`, scheduler.PromoteOptions{Force: true}},
			{"two", "the pattern", scheduler.PromoteOptions{Pattern: "job-["}},
			{"two", "the pattern", scheduler.PromoteOptions{Pattern: "a|b"}},
			{"two", "no job matches zzz*", scheduler.PromoteOptions{Pattern: "zzz*"}},
			{"two", "it has no job that matches leaves", scheduler.PromoteOptions{Pattern: "leaves", Force: true}},
		} {
			_, err := c.promoteKilled(&killer{}, x.generation, x.o)
			if !errors.Is(err, scheduler.ErrRefused) || !strings.Contains(err.Error(), x.says) {
				c.t.Errorf("promote %s %+v: %v; want %s", x.generation, x.o, err, x.says)
			}
		}
		for key := range map[string]bool{"{escapement}:roster": true, "{escapement}:seen": true} {
			server.Mini().Del(key)
		}
		if _, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{}); !errors.Is(err, scheduler.ErrRefused) || !strings.Contains(err.Error(), "no node of it is alive") {
			c.t.Errorf("nobody lives: %v", err)
		}
		if got := ledgerOf(server); got != before {
			c.t.Errorf("a refusal has changed: %s", differing(before, got))
		}
		if p, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{Force: true}); err != nil || p.Switched.Count != 5 || p.Orphaned.Count != 1 || p.Created.Count != 1 {
			c.t.Errorf("forced: %+v, %v", p, err)
		}
		back()
		for _, p := range []string{"0", "1"} {
			server.Mini().Del("{escapement:" + p + "}:beside")
		}
		was := ledgerOf(server)
		if _, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{}); !errors.Is(err, scheduler.ErrRefused) || !strings.Contains(err.Error(), "have not said yet") || ledgerOf(server) != was {
			c.t.Errorf("its nodes have just started: %v", err)
		}
		back()
		_ = server.Mini().Set("{escapement:1}:gate", "1|0|one|sealed|m1|elsewhere:1")
		was = ledgerOf(server)
		if _, err := c.promoteKilled(&killer{}, "two", scheduler.PromoteOptions{}); !errors.Is(err, scheduler.ErrRefused) || !strings.Contains(err.Error(), "elsewhere:1") || ledgerOf(server) != was {
			c.t.Errorf("sealed: %v", err)
		}
	})
}
