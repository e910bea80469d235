package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A stopped node hands over first: at whatever instant of the second it is stopped, no tick is
// late, and each runs once (P7).
func TestLeaveMakesNoTickLate(t *testing.T) {
	for offset := 20 * time.Millisecond; offset < time.Second; offset += 310 * time.Millisecond {
		t.Run(offset.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				nodes, list := trio(c, s)
				start := time.Now()
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + offset)))
				owned := c.node("b").Owned
				told := time.Now()
				nodes[1].stop()
				time.Sleep(10 * time.Millisecond)
				notReady(t, nodes[1].Node, "draining")
				if v := c.node("b"); v.State != "draining" {
					t.Errorf("the others are not told at once: %+v", v)
				}
				c.leave(nodes[1])
				if took := time.Since(told); took > 1500*time.Millisecond {
					t.Errorf("it took %s to end: the others beat once a second", took)
				}
				time.Sleep(4 * time.Second)
				if latest := s.each(t, list, start, time.Now()); latest > onTime || owned == 0 {
					t.Errorf("a tick was %s late; the node owned %d jobs", latest, owned)
				}
				c.end()
				s.check(t)
			})
		})
	}
}

// Nodes join that take more than a second to register their jobs. Who went first for those goes on
// meanwhile: no tick is late.
func TestJoinMakesNoTickLate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		_, list := trio(c, s)
		start := time.Now()
		for i := range 3 {
			client := server.Client()
			client.AddHook(around{script: "define", before: func() { time.Sleep(1200 * time.Millisecond / partitions) }})
			c.startOver(client, fmt.Sprint("new-", i), scheduler.Config{}, list...)
			time.Sleep(4*time.Second + 310*time.Millisecond)
		}
		if latest := s.each(t, list, start, time.Now().Add(-time.Second)); latest > onTime {
			t.Errorf("a tick was %s late", latest)
		}
		c.end()
		s.check(t)
	})
}

// A node drains while its claims are not answered. It beats on, also when the roster changes.
func TestDrainingNodeBeats(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		list := many(10, &sink{})
		var held atomic.Bool
		client := server.Client()
		client.AddHook(around{script: "claim", before: func() {
			if held.Load() {
				time.Sleep(20 * time.Second)
			}
		}})
		a := c.startOver(client, "a", scheduler.Config{}, list...)
		c.start("b", scheduler.Config{}, list...)
		time.Sleep(4 * time.Second)
		held.Store(true)
		time.Sleep(time.Second)
		a.stop()
		time.Sleep(handedOver + time.Second)
		c.start("c", scheduler.Config{}, list...)
		time.Sleep(10 * time.Second) // twice as long as a node that does not beat is in the roster
		if v := c.node("a"); v.State != "draining" {
			t.Errorf("it is not in the roster any more: %+v", v)
		}
		held.Store(false)
	})
}

// A node without successors, or without jobs to hand over, stops at once.
func TestLeaveAtOnce(t *testing.T) {
	elsewhere := func(j jobs.Job) jobs.Job {
		j.Labels = map[string]string{"on": "a"}
		return j
	}
	raced := func(j jobs.Job) jobs.Job {
		j.Placement = jobs.PlacementRace
		return j
	}
	for name, x := range map[string]struct {
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
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				j := x.job(eachSecond("job", &sink{}))
				c.start("a", scheduler.Config{Labels: map[string]string{"on": "a"}}, j)
				for i := range x.others {
					c.start(fmt.Sprint("n", i), scheduler.Config{}, j)
				}
				time.Sleep(4*time.Second + 300*time.Millisecond)
				for _, r := range c.nodes {
					if r.Name() != x.leaves {
						continue
					}
					told := time.Now()
					c.leave(r)
					if took := time.Since(told); took > 10*time.Millisecond {
						t.Errorf("it took %s to end", took)
					}
				}
				if v := c.node(x.leaves); v.Name != "" {
					t.Errorf("it is still in the roster: %+v", v)
				}
			})
		})
	}
}

// All other nodes are cut off from Redis and cannot notice the stop: the handover ends all the
// same, and ticks due until then run on time. With a short DrainTimeout, it takes half of that
// time.
func TestLeaveWithoutRedis(t *testing.T) {
	for timeout, most := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Second: 500 * time.Millisecond} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				s := &sink{}
				list := many(10, s)
				var network redistest.Net
				a := c.start("a", scheduler.Config{DrainTimeout: timeout}, list...)
				for _, name := range []string{"b", "c"} {
					c.startOver(network.Client(server.Options()), name, scheduler.Config{DrainTimeout: time.Second}, list...)
				}
				time.Sleep(4*time.Second + 300*time.Millisecond)
				owner := make(map[string]string)
				for _, v := range must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items {
					owner[v.Name] = v.Owner
				}
				network.Cut()
				told := time.Now()
				c.leave(a)
				if took := time.Since(told); took < most-10*time.Millisecond || took > most+50*time.Millisecond {
					t.Errorf("it took %s to end, want %s", took, most)
				}
				for _, r := range s.all() {
					if r.node == "a" && r.tick.After(told) && (owner[r.job] != "a" || r.at.Sub(r.tick) > onTime) {
						t.Errorf("it ran %s of %s, whose owner is %s, %s late", r.tick, r.job, owner[r.job], r.at.Sub(r.tick))
					}
				}
				if most == 2*time.Second && s.ranOn("a", told) == 0 {
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

// A run that starts in the handover may go on for the rest of the drain time, which counts from the
// node's stop. Its context ends then, with the cause.
func TestLeaveWaitsForWhatItBegan(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, causes := &sink{}, make(chan error, 100)
		j := jobs.Job{Name: "job", Schedule: "* * * * * *", TTL: 5 * time.Second, Overlap: jobs.OverlapAllow, Func: func(ctx context.Context, r *jobs.Run) error {
			s.write(r)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{DrainTimeout: 3 * time.Second}, j)
		}
		time.Sleep(4*time.Second + 900*time.Millisecond)
		leaver := c.nodes[0]
		if c.node("a").Owned == 0 {
			leaver = c.nodes[1]
		}
		told := time.Now()
		c.leave(leaver)
		if took := time.Since(told); took < 3*time.Second || took > 3*time.Second+100*time.Millisecond {
			t.Errorf("it took %s to end, want the drain time of 3s", took)
		}
		if cause := <-causes; !errors.Is(cause, scheduler.ErrDraining) {
			t.Errorf("cause %v", cause)
		}
		if s.ranOn(leaver.Name(), told) == 0 {
			t.Error("it began nothing in the hand-over")
		}
	})
}
