package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// crowded counts how many runs each node carries at once.
type crowded struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (c *crowded) enter(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[node]++
	c.most[node] = max(c.most[node], c.now[node])
}

func (c *crowded) leave(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[node]--
}

// takes is a job whose runs last, and are counted.
func (c *crowded) takes(name, schedule string, d time.Duration, s *sink) jobs.Job {
	return jobs.Job{Name: name, Schedule: schedule, TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
		c.enter(r.Node())
		defer c.leave(r.Node())
		s.write(r)
		time.Sleep(d)
		return nil
	}}
}

// A node that is full claims no more; what it would have gone first for, another one takes, as if it had died (P6).
func TestFullNodeLeavesTicksToOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, busy := &sink{}, &crowded{now: make(map[string]int), most: make(map[string]int)}
		var list []jobs.Job
		for i := range 20 {
			list = append(list, busy.takes(fmt.Sprintf("long-%02d", i), "*/10 * * * * *", 6*time.Second, s))
		}
		c.start("small", scheduler.Config{MaxRunning: 2}, list...)
		c.start("large", scheduler.Config{MaxRunning: 256}, list...)
		time.Sleep(68 * time.Second)
		c.end()
		s.check(t)
		var latest time.Duration
		ran := make(map[string]int)
		for _, r := range s.all() {
			ran[r.node]++
			if latest = max(latest, r.at.Sub(r.tick)); r.at.Sub(r.tick) > 2*time.Second {
				t.Errorf("P6: %s %s started %s late on %s", r.job, r.tick, r.at.Sub(r.tick), r.node)
			}
		}
		t.Logf("%d runs on the small node, %d on the large one; at most %d and %d at once; the latest started %s after it was due",
			ran["small"], ran["large"], busy.most["small"], busy.most["large"], latest)
		if busy.most["small"] != 2 {
			t.Errorf("%d runs at once on a node with max_running 2; want 2 and no more", busy.most["small"])
		}
		if n := ran["small"] + ran["large"]; n != 6*20 || ran["small"] < 6*2 {
			t.Errorf("%d runs, %d of them on the small node; want 120, and at least 12", n, ran["small"])
		}
		if latest < 500*time.Millisecond {
			t.Errorf("the latest started after %s: nothing had to be left to the other node", latest)
		}
	})
}

// All nodes are full for a minute: nobody asks for what nobody can run, nothing is lost, and the records say what was late.
func TestAllNodesFullForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		embedded, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer embedded.Close()
		watch := newClaimWatch(t)
		c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
			client := embedded.Client()
			client.AddHook(watch)
			return client
		}}
		s, busy := &sink{}, &crowded{now: make(map[string]int), most: make(map[string]int)}
		var list []jobs.Job
		for i := range 4 {
			list = append(list, busy.takes(fmt.Sprint("hog-", i), "5 0 * * * *", time.Minute, s))
		}
		for i := range 6 {
			list = append(list, busy.takes(fmt.Sprint("quick-", i), "* * * * * *", 10*time.Millisecond, s))
		}
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{MaxRunning: 2}, list...)
		}
		time.Sleep(9500 * time.Millisecond)
		watch.take()
		before := len(s.all())
		time.Sleep(55 * time.Second) // the first of the four ends after that
		asked, ran := watch.take(), len(s.all())-before
		time.Sleep(20*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		if len(asked) > 0 || ran > 0 {
			t.Errorf("while all nodes were full claims were answered %v, and %d runs began", asked, ran)
		}
		if busy.most["a"] != 2 || busy.most["b"] != 2 || watch.most > 2 {
			t.Errorf("%v runs at once, %d claims in one request: more than the 2 slots of a node, or the nodes were not full", busy.most, watch.most)
		}
		got := outcomes(c.runs("quick-0"))
		t.Logf("full for 55 s: %v claims, %d runs; at most %v runs at once, %d claims in a request; a job of each second: %v", asked, ran, busy.most, watch.most, got)
		if late := got["missed(late)"]; late < 50 || late > 61 || got["succeeded"]+late < 83 {
			t.Errorf("history %v: want about 59 ticks missed because they were late, and all others succeeded", got)
		}
		var latest int
		for _, r := range s.all() {
			if r.job == "quick-0" && r.trigger == jobs.TriggerCatchUp {
				latest++
			}
		}
		if latest != 1 {
			t.Errorf("%d runs to catch up, want 1: the latest of what was missed", latest)
		}
	})
}

// TestFewSlotsAreTakenInBatches has a node with far fewer slots than ticks that are due at once. As slots become free they are taken for one
// partition together: else a batch would become as many as there are partitions, and each of these as many again when its runs end, until
// claims and ends went one by one.
func TestFewSlotsAreTakenInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		const due, slots, seconds = 320, 16, 5
		s := &sink{}
		var list []jobs.Job
		for i := range due {
			list = append(list, jobs.Job{Name: fmt.Sprint("job-", i), Schedule: "* * * * * *", Func: func(_ context.Context, r *jobs.Run) error {
				s.write(r)
				return nil
			}})
		}
		c.start("a", scheduler.Config{MaxRunning: slots}, list...)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		var calls atomic.Int64
		redis.SetHook(func(_ *server.Peer, cmd string, _ ...string) bool {
			if cmd == "EVALSHA" {
				calls.Add(1)
			}
			return false
		})
		before := len(s.all())
		time.Sleep(seconds * time.Second)
		redis.SetHook(nil)
		ticks, perTick := len(s.all())-before, float64(calls.Load())/float64(seconds*due)
		c.end()
		s.check(t)
		t.Logf("%.2f script calls a tick; two to %d ticks would be %.2f", perTick, slots, 2.0/slots)
		if ticks != seconds*due {
			t.Errorf("%d ticks ran in %d s, want %d", ticks, seconds, seconds*due)
		}
		if perTick > 0.5 {
			t.Errorf("%.2f script calls a tick", perTick)
		}
	})
}
