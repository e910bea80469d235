package schedtest_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// controls is how many seeds each control looks at.
const controls = 20

// healthy is a seed's plan without its faults and deploys.
func healthy(seed uint64) schedtest.Plan {
	p := planOf(seed)
	p.Faults, p.Versions, p.Heal, p.For = nil, nil, time.Second, 20*time.Second
	return p
}

func kinds(r schedtest.Result) map[verify.Kind]int {
	count := make(map[verify.Kind]int)
	for _, f := range r.Findings {
		count[f.Kind]++
	}
	return count
}

// Without faults nothing is late and nothing is missed.
func TestControl(t *testing.T) {
	for seed := range uint64(controls) {
		r := schedtest.Run(t, healthy(seed))
		for _, v := range []verify.Verdict{verify.Delayed, verify.Missed, verify.Superseded, verify.Unstarted, verify.Vanished} {
			if r.Verdicts[v] > 0 {
				t.Errorf("seed %d: %d ticks are %s without a fault", seed, r.Verdicts[v], v)
			}
		}
		if r.Verdicts[verify.Satisfied] < 15 || r.Stale > 0 || r.Excused > 0 {
			t.Errorf("seed %d: %v, %d stale writes, %d faults excused", seed, r.Verdicts, r.Stale, r.Excused)
		}
	}
}
