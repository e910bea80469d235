//go:build !race

package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// How late the ticks right after a promotion are: those of the generation that was promoted find out by themselves, and it
// takes each of its nodes a look at the control record, and a registration. So it is measured with promotions that end at
// all distances before a tick, over lines that take time.
func TestPromoteLag(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list, names := secondly(20, s)
		for _, n := range []string{"a0", "a1", "a2", "b0", "b1", "b2"} {
			generation := map[byte]string{'a': "one", 'b': "two"}[n[0]]
			c.startFar(server, n, scheduler.Config{Generation: generation, DrainTimeout: time.Second, HistoryKeep: 1000}, list...)
			time.Sleep(1370 * time.Millisecond) // so they beat at all parts of a second
		}
		time.Sleep(5 * time.Second)
		ordinary := (gap{time.Now().Add(-3 * time.Second), time.Now()}).each(t, s, names...)
		began := time.Now()
		var lags []time.Duration
		const rounds = 24
		for n := range rounds {
			before := time.Duration(n) * 400 * time.Millisecond / rounds // of a tick
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(2*time.Second - before)))
			if p := c.promote([]string{"two", "one"}[n%2], scheduler.PromoteOptions{}); p.Switched.Count != 20 {
				t.Errorf("promotion %d: %+v", n, p)
			}
			tick := time.Now().Add(999 * time.Millisecond).Truncate(time.Second)
			time.Sleep(time.Until(tick.Add(1500 * time.Millisecond)))
			lags = append(lags, gap{tick, tick.Add(time.Second)}.each(t, s, names...))
		}
		gap{began, time.Now().Add(-time.Second)}.each(t, s, names...)
		slices.Sort(lags)
		longest := lags[rounds-1]
		t.Logf("longest lag of the %d jobs' ticks after each of %d promotions: least %s, median %s, greatest %s; ordinarily %s",
			len(names), rounds, lags[0], lags[rounds/2], longest, ordinary)
		if longest > 700*time.Millisecond { // a beat in a second would tell as well, but later
			t.Errorf("a tick was %s late", longest)
		}
		if longest < 100*time.Millisecond || lags[rounds/2] <= ordinary {
			t.Error("no promotion came between a tick and those who run it: this measures nothing")
		}
		c.end()
		s.check(t)
	})
}
