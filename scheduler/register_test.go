package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// An old build that goes on in a deploy, or is started again in the middle of it, does not restore
// the old definitions, whatever its revision is beside the newer one. No tick is superseded, for
// both have the same schedule.
func TestOlderBuildsChangeNothingBack(t *testing.T) {
	for _, x := range []struct{ name, old, fresh string }{{"newer", "2026-01-01", "2026-02-01"}, {"equal", "2026-01-01", "2026-01-01"}, {"empty", "", ""}} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				old, fresh := eachSecond("job", s), eachSecond("job", s)
				fresh.TTL = 7 * time.Second
				want := func(ttl time.Duration, when string) {
					t.Helper()
					if v := c.job("job"); v.TTL != ttl {
						t.Errorf("%s the ttl is %s, want %s", when, v.TTL, ttl)
					}
				}
				restarted := c.start("old0", scheduler.Config{Revision: x.old}, old)
				c.start("old1", scheduler.Config{Revision: x.old}, old)
				time.Sleep(4 * time.Second)
				for n := range 3 { // at different phases of the old nodes' beats and tries
					node := c.start("new", scheduler.Config{Revision: x.fresh}, fresh)
					time.Sleep(time.Duration(1000+n*430) * time.Millisecond)
					want(7*time.Second, "with a newer node")
					c.leave(restarted)
					restarted = c.start("old0", scheduler.Config{Revision: x.old}, old)
					for range 7 {
						time.Sleep(time.Second)
						want(7*time.Second, "after an old node was started again")
					}
					c.leave(node)
					time.Sleep(7 * time.Second)
					want(5*time.Second, "after the newer node left")
					if x.old == x.fresh {
						break // a replaced definition counts again only when its successor is gone
					}
				}
				c.end()
				s.check(t)
				if got := outcomes(c.runs("job")); got["superseded(definition replaced)"] != 0 {
					t.Errorf("ticks of a schedule that did not change were superseded: %v", got)
				}
			})
		})
	}
}

// A rolling deploy over three nodes changes ttl, schedule and shard count: each once, at a tick's
// border. Tools show the nodes with the older definition, and each such node logs once.
func TestRollingDeployChangesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		build := func(n int) []jobs.Job {
			ttl, rhythm, wide, same := eachSecond("ttl", s), eachSecond("rhythm", s), eachSecond("wide", s), eachSecond("same", s)
			ttl.TTL += time.Duration(n) * time.Second
			if n%2 == 1 {
				rhythm.Schedule = "@every 2s"
			}
			wide.Shards = 2 + 2*n
			for shard := range wide.Shards {
				wide.Params = append(wide.Params, fmt.Sprint(shard, " of ", wide.Shards))
			}
			return []jobs.Job{ttl, rhythm, wide, same}
		}
		var nodes [3]*running
		for i := range nodes {
			nodes[i] = c.start(string(rune('a'+i)), scheduler.Config{Revision: "0"}, build(0)...)
		}
		time.Sleep(5*time.Second + 300*time.Millisecond)
		began := time.Now()
		for n := 1; n <= 2; n++ {
			for i := range nodes {
				c.leave(nodes[i])
				nodes[i] = c.start(string(rune('a'+i)), scheduler.Config{Revision: string(rune('0' + n))}, build(n)...)
				time.Sleep(3*time.Second + 170*time.Millisecond)
				if v := c.job("ttl"); i == 0 && len(v.Superseded) != 2 {
					t.Errorf("superseded on %v, want the two nodes of the older build", v.Superseded)
				}
			}
			if v := c.job("ttl"); len(v.Superseded) != 0 || v.TTL != time.Duration(5+n)*time.Second {
				t.Errorf("after deploy %d: %+v", n, v)
			}
		}
		end := time.Now()
		time.Sleep(2 * time.Second)
		if latest := s.each(t, []jobs.Job{build(0)[0], build(0)[3]}, began, end); latest > 2500*time.Millisecond {
			t.Errorf("a tick was %s late", latest)
		}
		c.end()
		s.check(t)
		shards := make(map[time.Time][]string) // of each tick of the sharded job
		for _, r := range s.all() {
			if r.job == "wide" {
				shards[r.tick] = append(shards[r.tick], r.param)
			}
		}
		for tick, params := range shards {
			for _, p := range params {
				if of := fmt.Sprint(" of ", len(params)); p[1:] != of {
					t.Errorf("%s is mixed of builds: its shards are %q", tick, params)
				}
			}
		}
		for name, most := range map[string]int64{"ttl": 0, "same": 0, "wide": 0, "rhythm": 4} {
			if got := outcomes(c.runs(name))["superseded(definition replaced)"]; got > most {
				t.Errorf("%s: %d ticks were superseded", name, got)
			}
		}
		if n := c.logs.count(`job=same why="superseded`); n != 0 {
			t.Errorf("a job that did not change was superseded %d times", n)
		}
		if n := c.logs.count(`job=ttl why="superseded`); n == 0 || n > 6 {
			t.Errorf("told %d times; want once by each older node that found out", n)
		}
	})
}

// A build with the definition that is stored already is tried and withdrawn. It decides no more:
// the stored definition is held by older nodes alone, and the build between the two is stored.
func TestNewestOfTheLivingDecides(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		old := eachSecond("job", s)
		changed := old
		changed.Schedule = "@every 2s"
		c.start("one", scheduler.Config{Revision: "1"}, old)
		time.Sleep(3 * time.Second)
		three := c.start("three", scheduler.Config{Revision: "3"}, old)
		time.Sleep(3 * time.Second)
		c.start("two", scheduler.Config{Revision: "2"}, changed)
		time.Sleep(10 * time.Second)
		if got := c.job("job").Schedule; got != old.Schedule {
			t.Errorf("while build 3 lives the schedule is %s", got)
		}
		c.leave(three)
		time.Sleep(10 * time.Second)
		if got := c.job("job").Schedule; got != changed.Schedule {
			t.Errorf("when builds 1 and 2 are left the schedule is %s", got)
		}
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t)
		if n := c.logs.count("definition replaced"); n != 1 {
			t.Errorf("the definition was replaced %d times", n)
		}
	})
}

// A tick of the old schedule comes due while the request that replaces it is under way: it is
// counted, not passed over (P2).
func TestReplacementCountsTheTickThatComesDue(t *testing.T) {
	for past := 300 * time.Millisecond; past < 2*time.Second; past += 400 * time.Millisecond {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			old, changed := eachSecond("job", &sink{}), eachSecond("job", &sink{})
			old.Schedule, changed.Schedule = "*/2 * * * * *", "@yearly"
			n := c.start("old", scheduler.Config{Revision: "1"}, old)
			time.Sleep(6*time.Second + 500*time.Millisecond)
			c.leave(n)
			time.Sleep(past)
			var replaced time.Time
			client := server.Client()
			client.AddHook(around{script: "define", before: func() { time.Sleep(900 * time.Millisecond) }, after: func() { replaced = time.Now() }})
			c.startOver(client, "new", scheduler.Config{Revision: "2"}, changed)
			time.Sleep(8 * time.Second)
			var ticks int64
			for _, n := range outcomes(c.runs("job")) {
				ticks += n
			}
			if due := replaced.Unix() / 2 % 30; ticks != due {
				t.Errorf("replaced %s, %d ticks are recorded of the %d that were due", replaced.Format(time.StampMilli), ticks, due)
			}
		})
	}
}

// A node that starts again sends a line for each thousand unchanged jobs, and defines the changed
// ones.
func TestRestartSendsWhatChanged(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const many = 1500
		daily := func(ttl time.Duration) (list []jobs.Job) {
			for i := range many {
				list = append(list, jobs.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@daily", Func: func(context.Context, *jobs.Run) error { return nil }})
			}
			list[7].TTL = ttl
			return list
		}
		start := func(name string, cfg scheduler.Config, ttl time.Duration) (sent int) {
			k, client := &killer{}, server.Client()
			client.AddHook(k)
			n := c.startOver(client, name, cfg, daily(ttl)...)
			time.Sleep(3 * time.Second)
			if err := n.Ready(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			c.leave(n)
			for _, args := range k.sent {
				for _, a := range args[2:] { // behind the script
					sent += len(fmt.Sprintf("%s", a))
				}
			}
			return sent
		}
		start("a", scheduler.Config{Revision: "1"}, time.Minute)
		for _, x := range []struct {
			name, revision string
			ttl            time.Duration
			most           int
		}{{"b", "1", time.Minute, 10_000}, {"c", "2", time.Minute, 10_000}, {"d", "3", 2 * time.Minute, 25_000}} {
			if got := start(x.name, scheduler.Config{Revision: x.revision}, x.ttl); got > x.most {
				t.Errorf("node %s sent %d bytes of arguments, want %d at most", x.name, got, x.most)
			}
		}
		for _, v := range must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items {
			if ttl := v.TTL; v.Revision != "3" || (v.Name == "job-0007") != (ttl == 2*time.Minute) {
				t.Fatalf("%s has revision %s and a ttl of %s", v.Name, v.Revision, ttl)
			}
		}
	})
}
