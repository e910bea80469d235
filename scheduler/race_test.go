package scheduler_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

func raced(name string, s *sink) jobs.Job {
	j := eachSecond(name, s)
	j.Placement = jobs.PlacementRace
	return j
}

// asked notes which nodes asked for which tick.
type asked struct {
	mu    sync.Mutex
	ticks map[time.Time]map[string]bool
}

func (a *asked) hooks() *scheduler.Hooks {
	return &scheduler.Hooks{Due: func(e scheduler.TickEvent) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ticks[e.Tick] == nil {
			a.ticks[e.Tick] = make(map[string]bool)
		}
		a.ticks[e.Tick][e.Node] = true
	}}
}

// Where nodes race all of them ask for the tick, and one runs it.
func TestRacedTickRunsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, a := &sink{}, &asked{ticks: make(map[time.Time]map[string]bool)}
		for i := range 3 {
			c.start(fmt.Sprintf("n%d", i), scheduler.Config{Hooks: a.hooks()}, raced("job", s))
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		c.end()
		s.check(t)
		ran := s.ticks("job")
		if len(ran) < 29 || len(ran) > 31 {
			t.Errorf("ran %d of 30 ticks", len(ran))
		}
		all := 0
		for _, tick := range ran {
			if len(a.ticks[tick]) == 3 {
				all++
			}
		}
		if all < len(ran)-2 {
			t.Errorf("all three nodes asked for %d of %d ticks: %v", all, len(ran), a.ticks)
		}
		if got := outcomes(c.runs("job")); len(got) != 1 || got["succeeded"] != int64(len(ran)) {
			t.Errorf("history %v, want %d succeeded and nothing else", got, len(ran))
		}
	})
}

// A node has died and the roster does not know yet. Its own jobs wait for the grace to be over; those that are
// raced for do not.
func TestRaceNeedsNoGrace(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const grace = 500 * time.Millisecond
		s := &sink{}
		var list []jobs.Job
		for i := range 10 {
			list = append(list, raced(fmt.Sprint("raced-", i), s), eachSecond(fmt.Sprint("owned-", i), s))
		}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, list...)
		c.start("b", scheduler.Config{}, list...)
		c.start("c", scheduler.Config{}, list...)
		time.Sleep(10*time.Second + 900*time.Millisecond)
		network.Cut()
		died := time.Now()
		time.Sleep(4 * time.Second) // less than it takes to leave the roster
		raced, worst, waited := 0, time.Duration(0), 0
		for _, r := range s.all() {
			late := r.at.Sub(r.tick)
			switch {
			case r.tick.Before(died):
			case r.job[:5] == "raced":
				raced, worst = raced+1, max(worst, late)
			case late >= grace:
				waited++
			}
		}
		t.Logf("%d raced runs, the latest by %s; %d others waited for the grace", raced, worst, waited)
		if raced != 40 || worst >= grace/10 {
			t.Errorf("%d raced runs, the latest by %s; want 40, none of them late", raced, worst)
		}
		if waited == 0 {
			t.Error("no job had the dead node as its owner: the case is not there")
		}
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		s.check(t)
	})
}
