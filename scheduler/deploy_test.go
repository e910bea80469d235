package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A deploy changes a schedule: the newer revision decides, the older node stops and says so once,
// no tick of either schedule runs twice, and when the newer node is gone the older one goes on.
func TestNewerDefinitionDecidesAndRollsBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		old, changed := eachSecond("job", s), eachSecond("job", s)
		changed.Schedule = "*/2 * * * * *"
		c.start("old", scheduler.Config{Revision: "2026-01-01"}, old)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		fresh := c.start("new", scheduler.Config{Revision: "2026-02-01"}, changed)
		time.Sleep(20 * time.Second)
		for _, r := range s.all() {
			if late := time.Date(2000, 1, 1, 0, 0, 12, 0, time.UTC); r.tick.After(late) && (r.node != "new" || r.tick.Second()%2 != 0) {
				t.Errorf("tick %s ran on %s after the deploy", r.tick, r.node)
			}
		}
		if n := c.logs.count("superseded: another definition"); n != 1 {
			t.Errorf("superseded was said %d times, want once", n)
		}
		c.leave(fresh)
		back := time.Now()
		time.Sleep(15 * time.Second)
		var after int
		for _, r := range s.all() {
			if r.tick.After(back) && r.node == "old" {
				after++
			}
		}
		if after < 5 {
			t.Errorf("the old node ran %d ticks in 15 s after the rollback", after)
		}
		c.end()
		s.check(t)
		if got := outcomes(c.runs("job")); got["superseded(definition replaced)"] > 12 {
			t.Errorf("history %v: more ticks superseded than the change of schedules explains", got)
		}
	})
}

// An older node that starts in the middle of a deploy changes nothing back.
func TestOlderNodeChangesNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		changed := eachSecond("job", s)
		changed.Schedule = "*/2 * * * * *"
		c.start("new", scheduler.Config{Revision: "2026-02-01"}, changed)
		time.Sleep(3*time.Second + 500*time.Millisecond)
		c.start("old", scheduler.Config{Revision: "2026-01-01"}, eachSecond("job", s))
		time.Sleep(20 * time.Second)
		c.end()
		s.check(t)
		for _, r := range s.all() {
			if r.node != "new" || r.tick.Second()%2 != 0 {
				t.Errorf("tick %s ran on %s", r.tick, r.node)
			}
		}
		if n := len(s.ticks("job")); n < 11 {
			t.Errorf("%d ticks ran, want 11", n)
		}
	})
}

// All of Redis is wiped: the nodes register again and go on, and tokens still grow.
func TestRedisWiped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{}, eachSecond("job", s))
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		client := server.Client()
		defer client.Close()
		if err := client.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		wiped := time.Now()
		time.Sleep(20 * time.Second)
		s.check(t)
		var after int
		for _, r := range s.all() {
			if r.tick.After(wiped) {
				after++
			}
		}
		if after < 10 {
			t.Errorf("%d ticks ran in 20 s after the wipe", after)
		}
	})
}

// Two nodes with one name confuse whoever reads the records: each says so, once.
func TestNamesakesAreSaid(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		for range 2 {
			c.start("same", scheduler.Config{}, eachSecond("job", &sink{}))
		}
		c.start("other", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(30 * time.Second)
		if n := c.logs.count("another node has the same name"); n != 2 {
			t.Errorf("said %d times, want once by each of the two", n)
		}
	})
}

// wantTTL checks which definition of the job is the stored one.
func (c *cluster) wantTTL(ttl time.Duration, when string) {
	c.t.Helper()
	if v := c.job("job"); v.TTLMS != ttl.Milliseconds() {
		c.t.Errorf("%s the ttl is %d ms, want %s", when, v.TTLMS, ttl)
	}
}

// A rolling deploy over three nodes changes ttl, schedule and shard count: each once, at a tick's border; who has the older
// definition is seen, and told once.
func TestRollingDeployChangesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, parts := &sink{}, newTally()
		build := func(n int) []jobs.Job {
			ttl, rhythm, wide, same := eachSecond("ttl", s), eachSecond("rhythm", s), eachSecond("wide", s), eachSecond("same", s)
			ttl.TTL += time.Duration(n) * time.Second
			if n%2 == 1 {
				rhythm.Schedule = "@every 2s"
			}
			wide.Shards, wide.Func = 2+2*n, func(_ context.Context, r *jobs.Run) error {
				parts.add(r.Tick(), r.Shard())
				parts.want(r.Tick(), r.Shards())
				return nil
			}
			return []jobs.Job{ttl, rhythm, wide, same}
		}
		var nodes [3]*running
		for i := range nodes {
			nodes[i] = c.start(string(rune('a'+i)), scheduler.Config{Revision: "0"}, build(0)...)
		}
		time.Sleep(5*time.Second + 300*time.Millisecond)
		began := time.Now()
		for n := 1; n <= 3; n++ {
			for i := range nodes {
				c.leave(nodes[i])
				nodes[i] = c.start(string(rune('a'+i)), scheduler.Config{Revision: string(rune('0' + n))}, build(n)...)
				time.Sleep(3*time.Second + 170*time.Millisecond)
				if i == 0 {
					if v := c.job("ttl"); len(v.Superseded) != 2 {
						t.Errorf("superseded on %v, want the two nodes of the older build", v.Superseded)
					}
				}
			}
			if v := c.job("ttl"); len(v.Superseded) != 0 || v.TTLMS != int64(5000+1000*n) {
				t.Errorf("after deploy %d: %+v", n, v)
			}
		}
		end := time.Now()
		time.Sleep(2 * time.Second)
		longest := gap{began, end}.each(t, s, "ttl", "same")
		t.Logf("longest lag %s", longest)
		if longest > longestLag {
			t.Errorf("a tick was %s late", longest)
		}
		parts.whole(t)
		c.end()
		s.check(t)
		for name, most := range map[string]int64{"ttl": 0, "same": 0, "wide": 0, "rhythm": 6} {
			if got := outcomes(c.runs(name))["superseded(definition replaced)"]; got > most {
				t.Errorf("%s: %d ticks were superseded", name, got)
			}
		}
		if n := c.logs.count(`job=same why="superseded`); n != 0 {
			t.Errorf("a job that did not change was superseded %d times", n)
		}
		if n := c.logs.count(`job=ttl why="superseded`); n == 0 || n > 9 {
			t.Errorf("told %d times; want once by each older node that found out", n)
		}
	})
}

// A build with the definition that is stored already is tried and taken back. It decides no more: what is stored is held by older nodes
// alone, and the build between the two comes.
func TestNewestOfTheLivingDecides(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		old := eachSecond("job", s)
		changed := old
		changed.Schedule = "@every 2s"
		schedule := func() string { return must[scheduler.JobView](t)(c.inspector().Job(t.Context(), "job")).Schedule }
		c.start("one", scheduler.Config{Revision: "1"}, old)
		time.Sleep(3 * time.Second)
		three := c.start("three", scheduler.Config{Revision: "3"}, old)
		time.Sleep(3 * time.Second)
		c.start("two", scheduler.Config{Revision: "2"}, changed)
		time.Sleep(10 * time.Second)
		if got := schedule(); got != old.Schedule {
			t.Errorf("while build 3 lives the schedule is %s", got)
		}
		c.leave(three)
		time.Sleep(10 * time.Second)
		if got := schedule(); got != changed.Schedule {
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
