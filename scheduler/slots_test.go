package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// load counts how many runs each node carries at once.
type load struct {
	mu        sync.Mutex
	now, most map[string]int
}

func newLoad() *load { return &load{now: make(map[string]int), most: make(map[string]int)} }

func (l *load) add(node string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[node] += n
	l.most[node] = max(l.most[node], l.now[node])
}

// job is a job whose runs last, and are counted.
func (l *load) job(name, schedule string, d time.Duration, s *sink) jobs.Job {
	return jobs.Job{Name: name, Schedule: schedule, TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
		l.add(r.Node(), 1)
		defer l.add(r.Node(), -1)
		s.write(r)
		time.Sleep(d)
		return nil
	}}
}

// A node that is full claims no more; another node takes what it owns, as if it had died (P6).
func TestFullNodeLeavesTicksToOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, busy := &sink{}, newLoad()
		var list []jobs.Job
		for i := range 20 {
			list = append(list, busy.job(fmt.Sprintf("long-%02d", i), "*/10 * * * * *", 6*time.Second, s))
		}
		c.start("small", scheduler.Config{MaxRunning: 2}, list...)
		c.start("large", scheduler.Config{MaxRunning: 256}, list...)
		time.Sleep(38 * time.Second)
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
		if busy.most["small"] != 2 {
			t.Errorf("%d runs at once on a node with max_running 2; want 2 and no more", busy.most["small"])
		}
		if n := ran["small"] + ran["large"]; n != 3*20 || ran["small"] < 3*2 {
			t.Errorf("%d runs, %d of them on the small node; want 60, and at least 6", n, ran["small"])
		}
		if latest < 500*time.Millisecond {
			t.Errorf("the latest started after %s: nothing had to be left to the other node", latest)
		}
	})
}

// All nodes are full for a minute: no node claims a tick that no node can run, nothing is lost, and
// the records name the late ticks.
func TestAllNodesFullForAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var claims atomic.Int64
		s, busy := &sink{}, newLoad()
		var list []jobs.Job
		for i := range 4 {
			list = append(list, busy.job(fmt.Sprint("hog-", i), "5 0 * * * *", time.Minute, s))
		}
		for i := range 6 {
			list = append(list, busy.job(fmt.Sprint("quick-", i), "* * * * * *", 10*time.Millisecond, s))
		}
		for _, name := range []string{"a", "b"} {
			client := server.Client()
			client.AddHook(around{script: "claim", before: func() { claims.Add(1) }})
			c.startOver(client, name, scheduler.Config{MaxRunning: 2, Partitions: 1}, list...)
		}
		time.Sleep(9500 * time.Millisecond)
		claims.Store(0)
		before := len(s.all())
		time.Sleep(55 * time.Second) // the first of the four ends after that
		asked, ran := claims.Load(), len(s.all())-before
		time.Sleep(20*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		if asked > 0 || ran > 0 {
			t.Errorf("while all nodes were full there were %d calls of claims, and %d runs began", asked, ran)
		}
		if busy.most["a"] != 2 || busy.most["b"] != 2 {
			t.Errorf("%v runs at once: more than the 2 slots of a node, or the nodes were not full", busy.most)
		}
		got := outcomes(c.runs("quick-0"))
		if late := got["missed(late)"]; late < 50 || late > 61 || got["succeeded"]+late < 83 {
			t.Errorf("history %v: want about 59 ticks missed because they were late, and all others succeeded", got)
		}
		latest := 0
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

// Functions that do not heed their contexts take all slots. The node logs the functions and the
// waiting jobs once in a while, and no more when one function has returned.
func TestLackOfSlotsIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		enough := make(chan struct{})
		stubborn := func(name string) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 5m", Timeout: time.Second, Func: func(context.Context, *jobs.Run) error {
				<-enough
				return nil
			}}
		}
		s := &sink{}
		third := eachSecond("third", s)
		third.Schedule = "1 5 * * * *" // when the other two have the slots
		c.start("a", scheduler.Config{MaxRunning: 2, Partitions: 1}, stubborn("first"), stubborn("second"), third)
		time.Sleep(5*time.Minute + 25*time.Second)
		if said, on := c.logs.count("all slots hold runs"), c.logs.count("goes on though its context has ended"); said != 2 || on != 2 {
			t.Errorf("said %d times that all slots are taken, and of %d functions that they go on; want 2 and 2", said, on)
		}
		close(enough)
		time.Sleep(time.Minute)
		if said := c.logs.count("all slots hold runs"); said != 2 || len(s.all()) != 1 {
			t.Errorf("said %d times, %d runs of the job that waited; want 2 and 1", said, len(s.all()))
		}
	})
}

// scriptCalls has the server count the calls of scripts.
func scriptCalls(on *redistest.Embedded) *atomic.Int64 {
	var n atomic.Int64
	on.SetHook(func(_ *server.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") {
			n.Add(1)
		}
		return false
	})
	return &n
}

// A tick costs at most two script calls, whatever the number of nodes. What the same nodes call
// when nothing is due is taken off.
func TestScriptCallsPerTick(t *testing.T) {
	for _, nodes := range []int{1, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, embedded *redistest.Embedded) {
				s := &sink{}
				list := many(20, s)
				for i := range list {
					list[i].Schedule = "5,20-24 * * * * *" // the first so that the server has cached the scripts
				}
				calls := scriptCalls(embedded)
				for i := range nodes {
					c.start(fmt.Sprint("n", i), scheduler.Config{}, list...)
				}
				time.Sleep(10*time.Second + 500*time.Millisecond)
				start, early := calls.Load(), len(s.all())
				time.Sleep(9 * time.Second)
				idle := calls.Load() - start
				time.Sleep(9 * time.Second)
				due, ticks := calls.Load()-start-2*idle, len(s.all())-early
				c.end()
				s.check(t)
				if ticks != 5*20 {
					t.Fatalf("%d ticks ran, want 100", ticks)
				}
				if perTick := float64(due) / float64(ticks); perTick > 2 || perTick <= 0 {
					t.Errorf("%.2f script calls a tick, want at most 2", perTick)
				}
			})
		})
	}
}
