package schedtest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// failoverPlan is a cluster whose nodes all live through one to three failovers. Each loses up to
// eight of the latest writes of ledger scripts. Nothing is excused: no tick may run twice or
// vanish, no two runs of a job overlap.
func failoverPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0xfa11))}
	lasting := func(least, most time.Duration) func(context.Context, *jobs.Run) error {
		return func(ctx context.Context, r *jobs.Run) error {
			wait := least
			if most > least {
				wait += time.Duration(uint64(r.Token()) % uint64(most-least))
			}
			select {
			case <-time.After(wait):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	p := Plan{
		Seed: seed, Nodes: 1 + d.IntN(5), Heal: 14 * time.Second, For: 34 * time.Second, strict: true,
		Jobs: []jobs.Job{
			{Name: "quick", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: lasting(5*time.Millisecond, 40*time.Millisecond)},
			{Name: "slow", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: lasting(100*time.Millisecond, 900*time.Millisecond)},
			{Name: "long", Schedule: "*/5 * * * * *", TTL: 4 * time.Second, Func: lasting(2*time.Second, 4*time.Second)},
			{Name: "parts", Schedule: "*/3 * * * * *", TTL: 3 * time.Second, Shards: 2 + d.IntN(4), Func: lasting(20*time.Millisecond, 700*time.Millisecond)},
			{Name: "asked", Schedule: "0 0 * * * *", TTL: 3 * time.Second, Func: lasting(10*time.Millisecond, 300*time.Millisecond)},
			{Name: "asked-parts", Schedule: "0 0 * * * *", TTL: 3 * time.Second, Shards: 3, Func: lasting(10*time.Millisecond, 300*time.Millisecond)},
			{Name: "follower", After: []string{"slow"}, TTL: 3 * time.Second, Func: lasting(5*time.Millisecond, 200*time.Millisecond)},
			{Name: "follower-parts", After: []string{"quick"}, TTL: 3 * time.Second, Shards: 2, Func: lasting(5*time.Millisecond, 200*time.Millisecond)},
		},
	}
	for range 1 + d.IntN(3) {
		p.Triggers = append(p.Triggers, Trigger{When: d.between(2*time.Second, 10*time.Second), Job: pick(d, []string{"asked", "asked-parts"})})
	}
	if d.IntN(2) == 0 { // ticks that lie one behind another are on several nodes
		p.Jobs[0].Placement = jobs.PlacementRace
	}
	points := []Point{BeforeClaim, AfterClaim, AfterClaim, BeforeStart, AfterStart, AfterStart, BeforeRenew, AfterRenew, BeforeSettle, AfterSettle, AfterSettle}
	for i := range 1 + d.IntN(3) {
		do, lasts := RollBackRedis, d.between(20*time.Millisecond, time.Second)
		if d.IntN(3) == 0 {
			do, lasts = FlipRedis, d.between(20*time.Millisecond, 2*time.Second)
		}
		p.Faults = append(p.Faults, Fault{
			Do: do, At: pick(d, points), Nth: 1 + d.IntN(6), When: time.Duration(4+3*i)*time.Second + d.between(0, time.Second),
			For: lasts, Writes: 1 + d.IntN(pastKept),
		})
	}
	return p
}

// TestFailover checks that a failover which nodes live through breaks none of the promises P1, P2
// and P4.
func TestFailover(t *testing.T) {
	s := &suite{name: "TestFailover", plan: failoverPlan, seeds: 8, enough: 40,
		shows: []string{"asserted: known", "asserted: restored", "asserted: ended", "failover between start and settle", "Redis lost something: flip Redis"}}
	s.run(t)
}

// emptiedPlan is a cluster whose nodes all live through one or two restarts of Redis without its
// data. For ticks due from then on the promises hold: each has a record, and none runs twice.
func emptiedPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0xe397))}
	p := failoverPlan(seed)
	p.strict = false
	p.Heal, p.For = 24*time.Second, 44*time.Second
	p.Jobs = append(p.Jobs,
		jobs.Job{Name: "all", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, CatchUp: jobs.CatchUpAll, CatchUpMax: 3, Func: p.Jobs[0].Func},
		jobs.Job{Name: "none", Schedule: "*/3 * * * * *", TTL: 3 * time.Second, CatchUp: jobs.CatchUpNone, Func: p.Jobs[0].Func},
		jobs.Job{Name: "queue", Schedule: "* * * * * *", TTL: 3 * time.Second, Overlap: jobs.OverlapQueue, Func: p.Jobs[2].Func},
	)
	points := []Point{BeforeClaim, AfterClaim, AfterClaim, AfterGrant, BeforeStart, AfterStart, BeforeRenew, BeforeSettle, AfterSettle, ""}
	p.Faults = nil
	for i := range 1 + d.IntN(2) {
		f := Fault{Do: EmptyRedis, At: pick(d, points), Nth: 1 + d.IntN(6), When: time.Duration(6+10*i)*time.Second + d.between(0, time.Second)}
		if f.For = d.between(20*time.Millisecond, 2*time.Second); i == 0 && d.IntN(4) == 0 {
			f.For = d.between(10*time.Second, 14*time.Second) // longer than late ticks are run in order
		}
		p.Faults = append(p.Faults, f)
	}
	return p
}

// TestEmptied checks P1 and P2 when nodes live through an emptied Redis.
func TestEmptied(t *testing.T) {
	s := &suite{name: "TestEmptied", plan: emptiedPlan, seeds: 4, enough: 20,
		shows: []string{"Redis lost something: empty Redis", "asserted: restored"}}
	s.run(t)
}

// aheadPlan is a cluster of which Redis is emptied, restarted or not, while all nodes but one stand
// still. That node meets the empty Redis 0.2 to 2 s earlier, and claims nothing before the other
// nodes have reported their runs.
func aheadPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0xa4ead))}
	p := emptiedPlan(seed)
	p.Nodes = 2 + d.IntN(3)
	p.Jobs = append(p.Jobs, jobs.Job{Name: "most", Schedule: "@every 2s", TTL: 3 * time.Second, Func: patient(1300 * time.Millisecond)})
	p.Faults = nil
	for i := range 1 + d.IntN(3) {
		at := time.Duration(6+6*i)*time.Second + d.between(0, time.Second)
		f := Fault{Do: pick(d, []Action{EmptyRedis, FlushRedis}), When: at}
		if f.Do == EmptyRedis {
			f.For = d.between(20*time.Millisecond, 700*time.Millisecond)
		}
		first, ahead := d.IntN(p.Nodes), d.between(200*time.Millisecond, waitedFor)
		for n, name := range p.names() {
			if n != first {
				p.Faults = append(p.Faults, Fault{Do: Pause, Node: name, When: at - 20*time.Millisecond, For: 20*time.Millisecond + f.For + ahead})
			}
		}
		p.Faults = append(p.Faults, f)
	}
	return p
}

// TestAhead checks P1 and P2 when nodes do not notice the emptied Redis at once.
func TestAhead(t *testing.T) {
	s := &suite{name: "TestAhead", plan: aheadPlan, seeds: 6, enough: 10,
		shows: []string{"Redis lost something: empty Redis", "Redis lost something: flush Redis", "asserted: restored"}}
	s.run(t)
}

// flushesPlan is a cluster whose Redis is emptied again and again while it runs: each 0.1 to 4 s,
// at times just before ticks, at times also restarted. All nodes live through it, one of them now
// and then a moment later.
func flushesPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0xf1005))}
	p := emptiedPlan(seed)
	p.Nodes, p.Faults = 1+d.IntN(4), nil
	every := pick(d, []time.Duration{150 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 4 * time.Second})
	for at := 6 * time.Second; at < 16*time.Second; at += every {
		f := Fault{Do: FlushRedis, When: at + d.between(0, every/2)}
		if every >= time.Second && d.IntN(2) == 0 {
			f.When = f.When.Truncate(time.Second) + d.between(900*time.Millisecond, 975*time.Millisecond)
		}
		if every > 500*time.Millisecond && d.IntN(3) == 0 {
			f.Do, f.For = EmptyRedis, d.between(20*time.Millisecond, 300*time.Millisecond)
		}
		p.Faults = append(p.Faults, f)
		if d.IntN(8) == 0 {
			p.Faults = append(p.Faults, Fault{Do: Pause, Node: pick(d, p.names()), When: f.When - 10*time.Millisecond, For: d.between(200*time.Millisecond, waitedFor)})
		}
	}
	return p
}

// TestFlushes checks P1 and P2 for epochs that may live shorter than the hold.
func TestFlushes(t *testing.T) {
	s := &suite{name: "TestFlushes", plan: flushesPlan, seeds: 4, enough: 10,
		shows: []string{"Redis lost something: flush Redis", "Redis lost something: empty Redis", "asserted: restored"}}
	s.run(t)
}
