package schedtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// beforeBeat is when a node's beat reaches Redis. Nothing else of the node is hit there.
const beforeBeat Point = "before beat"

// TestChurn lets nodes come and go while 60 jobs tick each second: they join, leave in order, are
// killed, freeze, and lose beats of the roster while their other calls get through.
func TestChurn(t *testing.T) {
	beat := roster.Scripts()["roster_beat"].Hash()
	plan := func(seed uint64) Plan {
		p := churnPlan(seed)
		p.scripts = map[string]string{beat: "beat"}
		return p
	}
	s := &suite{name: "TestChurn", plan: plan, seeds: 3, enough: 3,
		shows: []string{"fault: crash", "fault: drain", "fault: pause", "fault: reset", "fault: drop request", "node joined", "node out of the roster"}}
	s.run(t)
}

// churnPlan is the plan of a seed. Lost beats excuse nothing.
func churnPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0xc4a2))}
	p := Plan{Seed: seed, Nodes: 4 + d.IntN(3), Heal: 18 * second, For: 30 * second}
	for i := range 60 {
		work := 5 * time.Millisecond
		if i%20 == 0 {
			work = 600 * time.Millisecond // still at work when its node goes
		}
		p.Jobs = append(p.Jobs, jobs.Job{Name: fmt.Sprintf("job-%03d", i), Schedule: "* * * * * *", TTL: 3 * second, Func: patient(work)})
	}
	p.last = func(c *cluster) {
		c.disturbed = slices.DeleteFunc(c.disturbed, func(x audit.Disturbance) bool {
			return strings.HasPrefix(x.What, string(DropRequest)) || strings.HasPrefix(x.What, string(Reset))
		})
	}
	for at := 4 * second; at < p.Heal-second; at += d.between(700*time.Millisecond, 3*second) {
		churnChange(d, &p, at)
	}
	return p
}

// churnChange lets one node come or go.
func churnChange(d *dice, p *Plan, at time.Duration) {
	f := Fault{Node: string(rune('a' + d.IntN(p.Nodes))), When: at, For: d.between(second, 7*second)}
	switch d.IntN(7) {
	case 0:
		p.acts = append(p.acts, act{at, func(c *cluster) {
			s := &nodeSlot{name: string(rune('a' + len(c.nodeSlots)))}
			c.nodeSlots = append(c.nodeSlots, s)
			c.plan.Nodes = len(c.nodeSlots)
			c.seen["node joined"]++
			c.start(s)
		}})
		return
	case 1:
		f.Do = Drain // and another one joins, after that
	case 2:
		f.Do = Crash
	case 3:
		f.Do = Pause
	default:
		loseBeats(d, p, f.Node, at)
		return
	}
	p.Faults = append(p.Faults, f)
}

// loseBeats loses some beats of a node in a row, for the roster's time to live or nearly. An
// unanswered beat takes two seconds, a beat that breaks the connection none.
func loseBeats(d *dice, p *Plan, node string, at time.Duration) {
	f := Fault{Do: DropRequest, At: beforeBeat, Node: node, When: at}
	n := 2 + d.IntN(3)
	if d.IntN(2) == 0 {
		f.Do, n = Reset, 4+d.IntN(6)
	}
	p.acts = append(p.acts, act{at, func(c *cluster) {
		for range n {
			c.arm(f)
		}
	}}, act{at + 6*second, func(c *cluster) {
		x := c.sitting(node)
		record := c.server.Mini().HGet("{escapement}:roster", x.node.ID())
		if !x.dead && !x.leaving && x.died.IsZero() && !x.stopped() && time.Since(x.born) > 7*second && record == "" {
			c.seen["node out of the roster"]++
		}
	}})
}
