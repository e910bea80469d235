package scheduler_test

import (
	"context"
	"testing"
	"time"

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
