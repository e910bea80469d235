package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// refusals counts the claims of a client that were answered "held" or "stale".
type refusals struct{ n atomic.Int64 }

func (r *refusals) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *refusals) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refusals) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if script, is := cmd.(*redis.Cmd); is && err == nil && calls(cmd, "claim") {
			answers, _ := script.Slice()
			for _, a := range answers {
				if a == "held" || a == "stale" {
					r.n.Add(1)
				}
			}
		}
		return err
	}
}

// When Redis is back after an outage, nodes do not all claim every late tick: the owner does, and
// the other nodes in turns. A node whose claim was not answered asks once whether it was granted.
func TestLateTicksAreTakenInTurns(t *testing.T) {
	const nodes, n = 4, 100
	refused := make(map[jobs.Placement]int64)
	for _, placement := range []jobs.Placement{jobs.PlacementOwner, jobs.PlacementRace} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			var r refusals
			s := &sink{}
			list := many(n, s)
			for i := range list {
				list[i].Schedule, list[i].Placement = "*/10 * * * * *", placement
			}
			for i := range nodes {
				client := server.Client()
				client.AddHook(&r)
				c.startOver(client, fmt.Sprint("n", i), scheduler.Config{Partitions: 16}, list...)
			}
			time.Sleep(17 * time.Second)
			server.Stop()
			time.Sleep(5 * time.Second)
			before := len(s.all())
			r.n.Store(0)
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			refused[placement] = r.n.Load()
			if ran := len(s.all()) - before; ran != n {
				t.Errorf("%d ticks ran when Redis was back, want those of all %d jobs", ran, n)
			}
			c.end()
			s.check(t)
		})
	}
	t.Logf("refused claims: %v", refused)
	if turns, atOnce := refused[jobs.PlacementOwner], refused[jobs.PlacementRace]; 2*turns > atOnce || atOnce < 2*n {
		t.Errorf("%d claims were refused in turns, %d where all nodes ask at once; want half as many, and %d at least", turns, atOnce, 2*n)
	}
}

// The beats of a node fail, and its other calls get through. It has its turn for the late ticks of
// a node that has died (P6).
func TestTurnsWhileHeartbeatsFail(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, on *redistest.Embedded) {
		s := &sink{}
		list := many(20, s)
		var network redistest.Net
		c.startOver(network.Client(on.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, list...)
		id := c.start("b", scheduler.Config{}, list...).ID()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		var failed atomic.Int64
		on.SetHook(func(p *server.Peer, _ string, args ...string) bool {
			beat := slices.Contains(args, "{escapement}:roster") && slices.Contains(args, id)
			if beat {
				failed.Add(1)
				p.WriteError("BUSY with something else")
			}
			return beat
		})
		network.Cut()
		died := time.Now()
		time.Sleep(8 * time.Second)
		if latest := s.each(t, list, died, time.Now().Add(-2*time.Second)); latest > 2*time.Second || failed.Load() == 0 {
			t.Errorf("P6: a tick was %s late; %d beats failed", latest, failed.Load())
		}
		on.SetHook(nil)
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t)
	})
}

// A node has died and is still in the roster. Its own jobs wait for the end of the grace (P6); jobs
// that nodes race for do not.
func TestRaceNeedsNoGrace(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const grace = 500 * time.Millisecond
		s := &sink{}
		list := many(20, s)
		raced := make(map[string]bool)
		for i := range 10 {
			list[i].Placement = jobs.PlacementRace
			raced[list[i].Name] = true
		}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, list...)
		c.start("b", scheduler.Config{}, list...)
		c.start("c", scheduler.Config{}, list...)
		time.Sleep(10*time.Second + 900*time.Millisecond)
		network.Cut()
		died := time.Now()
		time.Sleep(4 * time.Second) // less than it takes to leave the roster
		waited := 0
		for _, r := range s.all() {
			late := r.at.Sub(r.tick)
			switch {
			case r.tick.Before(died):
			case raced[r.job] && late >= grace/10, late > 2*time.Second:
				t.Errorf("P6: %s of %s, raced for: %t, started %s late", r.tick, r.job, raced[r.job], late)
			case late >= grace:
				waited++
			}
		}
		if waited == 0 {
			t.Error("no job had the dead node as its owner: the case is not there")
		}
		s.each(t, list, died, time.Now().Add(-2*time.Second))
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t)
	})
}
