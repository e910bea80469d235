package schedtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

var (
	failoverSeed  = flag.Uint64("failover.seed", 0, "play this seed only and tell its story")
	failoverSeeds = flag.Int("failover.seeds", defaultFailovers, "how many seeds TestFailover plays")
	failoverFirst = flag.Uint64("failover.first", 1, "the first of them")
)

// unasserted breaks the script that restores runs: a server that lost them is not told.
var unasserted = map[string][]string{"reassert": {
	"if find_row(KEYS[FIRST + i], id) or trimmed(KEYS[FIRST + i], ended) then", "if true then",
}}

// failoverPlan is a cluster whose nodes all live through one to three failovers, each of which loses up to eight of the
// latest writes of ledger scripts. Nothing is excused: no tick may run twice or vanish, no two runs of a job overlap.
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
		},
	}
	for range 1 + d.IntN(3) {
		p.Triggers = append(p.Triggers, Trigger{When: d.between(2*time.Second, 10*time.Second), Job: "asked"})
	}
	if d.IntN(2) == 0 { // ticks that lie one behind another are on several nodes
		p.Jobs[0].Placement = jobs.PlacementRace
	}
	points := []Point{BeforeClaim, AfterClaim, AfterClaim, BeforeStart, AfterStart, AfterStart, BeforeRenew, AfterRenew, BeforeSettle, AfterSettle, AfterSettle}
	for i := range 1 + d.IntN(3) {
		p.Faults = append(p.Faults, Fault{
			Do: RollBackRedis, At: pick(d, points), Nth: 1 + d.IntN(6), When: time.Duration(4+3*i)*time.Second + d.between(0, time.Second),
			For: d.between(20*time.Millisecond, time.Second), Writes: 1 + d.IntN(pastKept),
		})
	}
	return p
}

// TestFailover holds promises P1, P2 and P4 to what is promised of a failover that nodes live through: that none breaks.
func TestFailover(t *testing.T) {
	if *failoverSeed != 0 {
		r := Run(t, failoverPlan(*failoverSeed))
		t.Logf("%s\n%s\ndigest %s", r, r.Seen, r.Digest)
		return
	}
	var mu sync.Mutex
	var next atomic.Uint64
	next.Store(*failoverFirst)
	seen, ticks, failed := Counters{}, 0, 0
	add := func(t *testing.T, seed uint64, r Result) (enough bool) {
		mu.Lock()
		defer mu.Unlock()
		seen.Add(r.Seen)
		ticks += r.Ticks
		if len(r.Findings) > 0 {
			failed++
			t.Errorf("seed %d: %d findings, the first: %s\nreplay it: go test ./scheduler/schedtest -run 'TestFailover$' -v -failover.seed %d", seed, len(r.Findings), r.Findings[0], seed)
		}
		return failed >= 5
	}
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				for seed := next.Add(1) - 1; seed < *failoverFirst+uint64(*failoverSeeds); seed = next.Add(1) - 1 {
					if add(t, seed, Play(t, failoverPlan(seed))) {
						return
					}
				}
			})
		}
	})
	t.Logf("%d seeds, %d failed; %d ticks\n%s", *failoverSeeds, failed, ticks, seen)
	for _, what := range []string{"asserted: known", "asserted: restored", "asserted: ended", "failover between start and settle"} {
		if seen[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

// TestFailoverUntold is the measure of the other: where the new server is not told, ticks run twice.
func TestFailoverUntold(t *testing.T) {
	kinds := make(map[string]int)
	const few = 3
	for i := range few {
		p := failoverPlan(uint64(1 + i))
		p.broken = unasserted
		for _, f := range Play(t, p).Findings {
			kinds[fmt.Sprint(f.Kind)]++
		}
	}
	t.Logf("%d seeds, findings by kind: %v", few, kinds)
	if kinds["DOUBLE"] == 0 {
		t.Error("no tick ran twice, so this shows nothing")
	}
}
