package scheduler_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

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

// A tick costs at most two script calls, whatever the number of nodes. What the same nodes call when nothing is due is taken off.
func TestScriptCallsPerTick(t *testing.T) {
	for _, nodes := range []int{1, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, embedded *redistest.Embedded) {
				s := &sink{}
				list := many(20, s)
				for i := range list {
					list[i].Schedule = "5,20-24 * * * * *" // the first so that the server knows the scripts
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

// A node has far fewer slots than ticks that are due at once. As slots become free they are taken for one partition together; else claims
// and ends would go one by one in the end.
func TestFewSlotsAreTakenInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, embedded *redistest.Embedded) {
		const due, slots, seconds = 160, 8, 3
		s := &sink{}
		c.start("a", scheduler.Config{MaxRunning: slots}, many(due, s)...)
		time.Sleep(6*time.Second + 500*time.Millisecond)
		calls, before := scriptCalls(embedded), len(s.all())
		time.Sleep(seconds * time.Second)
		ticks, perTick := len(s.all())-before, float64(calls.Load())/float64(seconds*due)
		c.end()
		s.check(t)
		if ticks != seconds*due {
			t.Errorf("%d ticks ran in %d s, want %d", ticks, seconds, seconds*due)
		}
		if perTick > 0.5 {
			t.Errorf("%.2f script calls a tick; two to %d ticks would be %.2f", perTick, slots, 2.0/slots)
		}
	})
}
