package redlock

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
)

var (
	simSeed  = flag.Uint64("sim.seed", 1, "the first of the schedules that TestSimulation plays")
	simCount = flag.Int("sim", 500, "how many schedules TestSimulation plays of each kind")
)

// tally plays count schedules from a seed on, and returns how many are bad, and the first.
func tally(k kind, r rules, from uint64, count int, stop bool) (bad int, first string, all counts) {
	for i := range count {
		seed := from + uint64(i)
		w := newWorld(seed, k, r)
		if what := w.play(); what != "" {
			if bad++; first == "" {
				first = fmt.Sprintf("%s (replay: -run 'TestSimulation$' -sim.seed=%d -sim=1)", what, seed)
			}
		}
		all.add(w.count)
		if stop && bad > 0 {
			break
		}
	}
	return bad, first, all
}

// TestSimulation plays the decisions of the driver against a model of masters
// that is as hostile as can be: locks lapse at any moment, messages are lost or come
// late, releases are forgotten, clients' clocks wrong, masters emptied. Where clocks
// are right it also shows that one at a time is sure of a lock.
func TestSimulation(t *testing.T) {
	count := *simCount
	t.Logf("seeds from %d; set -sim.seed", *simSeed)
	for _, n := range []int{3, 5} {
		for flags := range 4 {
			k := kind{n: n, loss: flags&1 != 0, timed: flags&2 != 0}
			bad, first, c := tally(k, rules{}, *simSeed, count, false)
			t.Logf("%+v: %d schedules, %d bad: %+v", k, count, bad, c)
			if bad > 0 {
				t.Errorf("%+v: %d of %d schedules are bad: %s", k, bad, count, first)
			}
			if count >= 100 && (c.grants < count || c.fast == 0 || c.fast >= c.grants) {
				t.Errorf("%+v: %d grants, %d fast: the schedules show nothing", k, c.grants, c.fast)
			}
			if count >= 100 && min(c.renewed, c.gone, c.taken, c.again, c.kept, c.late) < count/40 || !k.loss && c.set < count/40 || k.loss && c.rejoined < count/40 {
				t.Errorf("%+v: %+v: the schedules show too little", k, c)
			}
		}
	}
}

// TestSimulationCatches shows that the simulation sees each rule broken.
func TestSimulationCatches(t *testing.T) {
	wild, lossy, timed, both := kind{n: 3}, kind{n: 3, loss: true}, kind{n: 3, timed: true}, kind{n: 3, loss: true, timed: true}
	mutants := map[string]struct {
		rules rules
		kind  kind
		near  uint64 // the seed to begin at: for a rare fault, a little before the first seed that shows it
	}{
		"a token is raised unconditionally":           {rules{blindWrite: true}, wild, 0},
		"the largest promise is granted":              {rules{noWriteBack: true}, wild, 0},
		"a promise is lowered":                        {rules{plainAccept: true}, wild, 142900},
		"amnesiac masters vote":                       {rules{amnesiacVote: true}, lossy, 0},
		"a master rejoins before the old are over":    {rules{noQuarantine: true}, both, 0},
		"a master rejoins without the others' tokens": {rules{lowFloor: true}, lossy, 0},
		"a master rejoins with tokens from before":    {rules{earlyFloor: true}, lossy, 8300},
		"a lock is set without another round":         {rules{setAtOnce: true}, timed, 0},
		"a token is raised for an earlier attempt":    {rules{lateRaises: true}, timed, 10600},
		"a renewal ignores the token":                 {rules{renewAnyToken: true}, wild, 0},
		"a lock is set unconditionally":               {rules{setBlind: true}, timed, 0},
		"a lock is set after a grant to another":      {rules{setLate: true}, timed, 21000},
		"a take-over keeps the token":                 {rules{takeOverKeeps: true}, timed, 0},
		"a second attempt asks for another token":     {rules{freshSecond: true}, timed, 0},
	}
	for _, name := range slices.Sorted(maps.Keys(mutants)) {
		m := mutants[name]
		bad, first, _ := tally(m.kind, m.rules, *simSeed+m.near, 40000, true)
		t.Logf("%s: %s", name, first)
		if bad == 0 {
			t.Errorf("%s: nothing found in 40000 schedules", name)
		}
	}
}
