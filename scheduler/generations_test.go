package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// longestLag bounds how late a tick may start because of a promotion.
const longestLag = 2500 * time.Millisecond

// Promote, promote back, promote: every tick of every job once, and soon.
func TestPromoteForthAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list, names := secondly(20, s)
		c.startThree(server, "a", "one", list...)
		time.Sleep(5*time.Second + 137*time.Millisecond)
		c.startThree(server, "b", "two", list...)
		time.Sleep(5*time.Second + 300*time.Millisecond)
		began := time.Now()
		if got := (gap{began.Add(-5 * time.Second), began}).byLetter(s); got["b"] != 0 || got["a"] == 0 {
			t.Errorf("before the promotion %v ran", got)
		}
		waits := []time.Duration{0, 470 * time.Millisecond, 40 * time.Millisecond} // so two of them are right before a tick
		for n, generation := range []string{"two", "one", "two"} {
			time.Sleep(waits[n])
			p := c.promote(generation, scheduler.PromoteOptions{})
			if p.Switched.Count != 20 || p.Created.Count+p.Orphaned.Count != 0 {
				t.Errorf("promotion of %s: %+v", generation, p)
			}
			switched := time.Now()
			time.Sleep(7 * time.Second)
			g := gap{switched.Add(longestLag), time.Now()}
			if got, letter := g.byLetter(s), map[string]string{"one": "a", "two": "b"}[generation]; len(got) != 1 || got[letter] == 0 {
				t.Errorf("after the promotion of %s %v ran", generation, got)
			}
		}
		end := time.Now()
		time.Sleep(3 * time.Second)
		longest := gap{began.Add(-4 * time.Second), end}.each(t, s, names...)
		if longest > longestLag {
			t.Errorf("a tick was %s late", longest)
		}
		t.Logf("longest lag %s", longest)
		if n := c.logs.count("on standby: another generation is active"); n != 3+3+3+3 {
			t.Errorf("said %d times that a node is on standby; want 3 at the start and 3 for each promotion", n)
		}
		if c.logs.count("job is not claimed by this node") != 0 {
			t.Error("a job on standby was told by itself")
		}
		c.end()
		s.check(t)
		for _, name := range names {
			if got := outcomes(c.runs(name)); len(got) != 1 {
				t.Errorf("%s: %v: ticks were superseded, though the schedule is the same", name, got)
				break
			}
		}
	})
}

// Nodes learn of a promotion also where nothing comes due for an hour.
func TestPromotionIsSeenWithoutTicks(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		job := eachSecond("job", &sink{})
		job.Schedule = "@every 1h"
		c.startThree(server, "a", "one", job)
		time.Sleep(3 * time.Second)
		c.startThree(server, "b", "two", job)
		time.Sleep(3 * time.Second)
		for _, generation := range []string{"two", "one"} {
			c.promote(generation, scheduler.PromoteOptions{})
			time.Sleep(3 * time.Second)
			c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
				nodes, err := i.Nodes(ctx)
				if err != nil || len(nodes) != 6 {
					t.Fatalf("%+v, %v", nodes, err)
				}
				for _, n := range nodes {
					if want := map[bool]string{true: "active", false: "standby"}[n.Generation == generation]; n.State != want {
						t.Errorf("after the promotion of %s, %s of %s is %s", generation, n.Name, n.Generation, n.State)
					}
				}
			})
		}
	})
}

func TestNodesOnStandby(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		list, _ := secondly(3, s)
		c.start("a", scheduler.Config{Generation: "one"}, list...)
		time.Sleep(3 * time.Second)
		b := c.start("b", scheduler.Config{Generation: "two", Revision: "9999"}, list...)
		time.Sleep(3 * time.Second)
		if err := b.Ready(); err != nil {
			t.Errorf("a node on standby is not ready: %v", err)
		}
		c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
			nodes, err := i.Nodes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			for _, n := range nodes {
				got[n.Name] = n.Generation + " " + n.State
				if n.Name == "b" && (n.Owned != 0 || n.Standby != 3 || n.Superseded != 0) {
					t.Errorf("node on standby: %+v", n)
				}
			}
			if got["a"] != "one active" || got["b"] != "two standby" {
				t.Errorf("nodes %v", got)
			}
			j, err := i.Job(ctx, "job-00")
			if err != nil || j.Generation != "one" || j.Owner != "a" || strings.Join(j.Standby, " ") != "b" || len(j.Superseded) != 0 {
				t.Errorf("job %+v, %v", j, err)
			}
		})
		for _, r := range s.all() {
			if r.node != "a" {
				t.Errorf("%s ran on a node on standby", r.job)
			}
		}
	})
}

// What a promotion would change is shown before it is done.
func TestGenerationsCompare(t *testing.T) {
	frozen(t, func(c *cluster, _ *redistest.Embedded, _ func()) {
		c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
			list, err := i.Generations(ctx)
			if err != nil || len(list) != 2 {
				c.t.Fatalf("%+v, %v", list, err)
			}
			one, two := list[0], list[1]
			if one.Name != "one" || one.State != scheduler.GenerationActive || one.Running != 6 || one.Jobs != 6 || one.Changed != (scheduler.ChangeCounts{}) {
				c.t.Errorf("active: %+v", one)
			}
			if two.State != scheduler.GenerationStandby || two.Running != 0 || two.Jobs != 6 || two.Nodes.Count != 1 || two.Unsettled.Count != 0 ||
				strings.Join(two.Added.First, " ") != "comes" || strings.Join(two.Removed.First, " ") != "leaves" {
				c.t.Errorf("standby: %+v", two)
			}
			if two.Changed != (scheduler.ChangeCounts{Schedules: 3, Settings: 1}) || two.Settings[0].Job != "changes" || strings.Join(two.Settings[0].Fields, " ") != "ttl_ms" {
				c.t.Errorf("changes: %+v", two)
			}
			for _, x := range two.Schedules {
				switch x.Job {
				case "moves":
					if x.Now.Ticks != 86400 || x.New.Ticks != 43200 || len(x.OnlyNow) != 5 || len(x.OnlyNew) != 0 || x.OnlyNow[1].String() != "2000-01-01T00:00:11.000Z" {
						c.t.Errorf("moves: %+v", x)
					}
				case "frees":
					if x.Now.After != "stays" || x.Now.Ticks != 0 || x.New.Ticks != 28800 {
						c.t.Errorf("frees: %+v", x)
					}
				case "turns":
					if x.Now.After != "stays" || x.New.After != "changes" || len(x.OnlyNow)+len(x.OnlyNew) != 0 {
						c.t.Errorf("turns: %+v", x)
					}
				}
			}
		})
	})
}
