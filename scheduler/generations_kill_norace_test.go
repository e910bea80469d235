//go:build !race

package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The same among living nodes: killed at each command in turn, left half done for a while, then repeated or undone. Every tick
// of what both generations have runs once, and no job waits long.
func TestPromoteKilledAmongLivingNodes(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		one, two, both := twoVersions(s)
		for _, n := range []string{"a0", "a1"} {
			c.startFar(server, n, scheduler.Config{Generation: "one", Partitions: 2, HistoryKeep: 2000}, one...)
		}
		time.Sleep(3*time.Second + 137*time.Millisecond)
		for _, n := range []string{"b0", "b1"} {
			c.startFar(server, n, scheduler.Config{Generation: "two", HistoryKeep: 2000}, two...)
		}
		time.Sleep(4*time.Second + 300*time.Millisecond)
		began := time.Now()
		active, other := "one", "two"
		kills := 0
		for at := 1; at <= 40; at++ {
			for _, after := range []bool{false, true} {
				_, err := c.promoteKilled(&killer{at: at, after: after}, other, scheduler.PromoteOptions{})
				if err != nil {
					kills++
				}
				time.Sleep(time.Duration(300+at*97%1000) * time.Millisecond)
				if at%3 != 0 {
					active, other = other, active // it is brought to its end
				}
				c.promote(active, scheduler.PromoteOptions{})
				time.Sleep(1100 * time.Millisecond)
			}
		}
		end := time.Now()
		time.Sleep(4 * time.Second)
		longest := gap{began.Add(-2 * time.Second), end}.each(t, s, both...)
		if longest > longestLag {
			t.Errorf("a tick was %s late", longest)
		}
		if kills < 60 {
			t.Errorf("only %d promotions were killed", kills)
		}
		t.Logf("%d promotions killed; longest lag %s", kills, longest)
		c.end()
		s.check(t)
	})
}
