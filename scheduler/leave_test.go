package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// onTime is how late a tick may be that nobody had to wait for.
const onTime = 50 * time.Millisecond

// A node that is told to end hands over first: whenever in the second it is told so, no tick is late, and each runs once.
func TestLeaveMakesNoTickLate(t *testing.T) {
	for offset := 20 * time.Millisecond; offset < time.Second; offset += 310 * time.Millisecond {
		t.Run(offset.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				nodes, list := trio(c, s)
				start := time.Now()
				time.Sleep(3 * time.Second)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + offset)))
				owned := view(t, c.inspector(), "b").Owned
				told := time.Now()
				nodes[1].stop()
				time.Sleep(10 * time.Millisecond)
				if err := nodes[1].Ready(); err == nil || err.Error() != "draining" {
					t.Errorf("ready: %v", err)
				}
				if v := view(t, c.inspector(), "b"); v.State != "draining" {
					t.Errorf("the others are not told at once: %+v", v)
				}
				c.leave(nodes[1])
				took := time.Since(told)
				time.Sleep(4 * time.Second)
				lag, runs := s.longestLag(start, time.Now())
				t.Logf("it owned %d jobs and took %s; longest lag of %d runs %s; it ran %d ticks meanwhile", owned, took, runs, lag, s.ranOn("b", told))
				if took > 1500*time.Millisecond {
					t.Errorf("it took %s to end: the others beat once a second", took)
				}
				if lag > onTime || owned == 0 {
					t.Errorf("a tick was %s late; the node owned %d jobs", lag, owned)
				}
				s.each(t, list, start, time.Now())
				c.end()
				s.check(t)
			})
		})
	}
}

// In a rolling restart every node leaves in turn and comes back, and no tick is late.
func TestLeaveRolling(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		nodes, list := trio(c, s)
		start := time.Now()
		for _, r := range nodes {
			c.leave(r)
			time.Sleep(700 * time.Millisecond)
			c.start(r.Name(), scheduler.Config{}, list...)
			time.Sleep(3 * time.Second)
		}
		if lag, runs := s.longestLag(start, time.Now()); lag > onTime {
			t.Errorf("of %d ticks one was %s late", runs, lag)
		}
		s.each(t, list, start, time.Now())
		c.end()
		s.check(t)
	})
}

// Shards are handed over as ticks are. (Two nodes: shards that move between those who stay are another matter.)
func TestLeaveWithShards(t *testing.T) {
	meanwhile := 0
	for offset := 100 * time.Millisecond; offset < time.Second; offset += 300 * time.Millisecond {
		bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
			p := &pieces{}
			j := sharded(6, "* * * * * *", func(_ context.Context, r *jobs.Run) error {
				p.write(r)
				return nil
			})
			a := c.start("a", scheduler.Config{}, j)
			time.Sleep(137 * time.Millisecond)
			c.start("b", scheduler.Config{}, j)
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(5*time.Second + offset)))
			told := time.Now()
			c.leave(a)
			time.Sleep(3 * time.Second)
			for _, r := range p.all() {
				if late := r.at.Sub(r.tick); r.tick.After(told) && late > onTime {
					t.Errorf("shard %d of %s was %s late on %s", r.shard, r.tick, late, r.node)
				} else if r.tick.After(told) && r.node == "a" {
					meanwhile++
				}
			}
			c.end()
			p.check(t)
		})
	}
	if meanwhile == 0 {
		t.Error("no shard ran in a hand-over")
	}
}

// Who has nobody to hand over to, or nothing to hand over, ends at once.
func TestLeaveAtOnce(t *testing.T) {
	elsewhere := func(j jobs.Job) jobs.Job {
		j.Labels = map[string]string{"on": "a"}
		return j
	}
	raced := func(j jobs.Job) jobs.Job {
		j.Placement = jobs.PlacementRace
		return j
	}
	for name, c := range map[string]struct {
		others int
		job    func(jobs.Job) jobs.Job
		leaves string
	}{
		"alone":                       {0, func(j jobs.Job) jobs.Job { return j }, "a"},
		"standby that owns nothing":   {2, elsewhere, "n1"},
		"nobody else may run the job": {2, elsewhere, "a"},
		"all nodes race":              {2, raced, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cl *cluster, _ *redistest.Embedded) {
				s := &sink{}
				j := c.job(eachSecond("job", s))
				cl.start("a", scheduler.Config{Labels: map[string]string{"on": "a"}}, j)
				for i := range c.others {
					cl.start(fmt.Sprint("n", i), scheduler.Config{}, j)
				}
				time.Sleep(4*time.Second + 300*time.Millisecond)
				for _, r := range cl.nodes {
					if r.Name() != c.leaves {
						continue
					}
					told := time.Now()
					cl.leave(r)
					if took := time.Since(told); took > 10*time.Millisecond {
						t.Errorf("it took %s to end", took)
					}
				}
				if v := view(t, cl.inspector(), c.leaves); v.Name != "" {
					t.Errorf("it is still in the roster: %+v", v)
				}
			})
		})
	}
}

// The others are cut off from Redis and hear of nothing: the hand-over ends all the same, and what is due until then
// runs on time. With less time to end, it takes half of that.
func TestLeaveWhenNobodyHears(t *testing.T) {
	for timeout, most := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Second: 500 * time.Millisecond} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				s := &sink{}
				var list []jobs.Job
				for i := range 10 {
					list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
				}
				var network redistest.Net
				a := c.start("a", scheduler.Config{DrainTimeout: timeout}, list...)
				for _, name := range []string{"b", "c"} {
					c.startOver(network.Client(server.Options()), name, scheduler.Config{DrainTimeout: time.Second}, list...)
				}
				time.Sleep(4*time.Second + 300*time.Millisecond)
				owner := make(map[string]string)
				for _, v := range must[[]scheduler.JobView](t)(c.inspector().Jobs(t.Context())) {
					owner[v.Name] = v.Owner
				}
				network.Cut()
				told := time.Now()
				c.leave(a)
				took := time.Since(told)
				if took < most-10*time.Millisecond || took > most+50*time.Millisecond {
					t.Errorf("it took %s to end, want %s", took, most)
				}
				ran := 0
				for _, r := range s.all() {
					switch {
					case r.node != "a" || !r.tick.After(told):
					case owner[r.job] != "a":
						t.Errorf("it ran %s of %s, which is not its own", r.tick, r.job)
					case r.at.Sub(r.tick) > onTime:
						t.Errorf("it ran %s of %s %s late", r.tick, r.job, r.at.Sub(r.tick))
					default:
						ran++
					}
				}
				if most == 2*time.Second && ran == 0 {
					t.Error("it ran nothing meanwhile")
				}
				network.Heal()
				time.Sleep(5 * time.Second)
				c.end()
				s.check(t)
			})
		})
	}
}

// A node whose Redis is away when it is told to end has nobody to tell. If it knows, it does not try; if not, it gives
// up with the first call that is not answered, and what it claimed until then keeps it as any claim without an answer.
func TestLeaveWithoutRedis(t *testing.T) {
	const unanswered, leave = 3 * time.Second, 2 * time.Second
	for name, c := range map[string]struct{ known, most time.Duration }{
		"it knows":         {5 * time.Second, unanswered + 500*time.Millisecond},
		"it does not know": {0, time.Second + unanswered + leave},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cl *cluster, server *redistest.Embedded) {
				s := &sink{}
				var list []jobs.Job
				for i := range 10 {
					list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
				}
				var network redistest.Net
				a := cl.startOver(network.Client(server.Options()), "a", scheduler.Config{}, list...)
				cl.start("b", scheduler.Config{}, list...)
				time.Sleep(4*time.Second + 300*time.Millisecond)
				network.Cut()
				time.Sleep(c.known)
				told := time.Now()
				cl.leave(a)
				if took := time.Since(told); took > c.most {
					t.Errorf("it took %s to end, want %s at most", took, c.most)
				}
				network.Heal()
				time.Sleep(7 * time.Second)
				cl.end()
				s.check(t)
			})
		})
	}
}

// What starts in the hand-over may run on for the rest of the drain time, which counts from the word to end.
func TestLeaveWaitsForWhatItBegan(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		j := jobs.Job{Name: "job", Schedule: "* * * * * *", TTL: 5 * time.Second, Overlap: jobs.OverlapAllow, Func: func(ctx context.Context, r *jobs.Run) error {
			s.write(r)
			<-ctx.Done()
			return ctx.Err()
		}}
		a := c.start("a", scheduler.Config{DrainTimeout: 4 * time.Second}, j)
		time.Sleep(3 * time.Second)
		c.start("b", scheduler.Config{DrainTimeout: time.Second}, j)
		time.Sleep(4*time.Second + 900*time.Millisecond)
		first, leaver := view(t, c.inspector(), "a").Owned, a
		if first == 0 {
			leaver = c.nodes[1]
		}
		told := time.Now()
		c.leave(leaver)
		want := 4 * time.Second
		if leaver != a {
			want = time.Second
		}
		if took := time.Since(told); took < want || took > want+100*time.Millisecond {
			t.Errorf("it took %s to end, want the drain time of %s", took, want)
		}
		if s.ranOn(leaver.Name(), told) == 0 {
			t.Error("it began nothing in the hand-over")
		}
	})
}
