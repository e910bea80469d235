//go:build !race

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

// Without the tick check the same plans, still without faults, run ticks twice: the claim believes whatever cursor
// it is told, so the second node that asks is granted the same tick.
func TestControlWithoutTickCheck(t *testing.T) {
	doubles := 0
	for seed := range uint64(controls) {
		p := healthy(seed)
		p.Config.Grace = 10 * time.Millisecond // nodes contend
		p.Break("claim", "if e.cursor ~= from or from == '' then", "e.cursor = from if from == '' then",
			"local held = tick ~= '' and mode ~= 'a' and e.open ~= ''", "local held = false")
		doubles += kinds(schedtest.Play(t, p))[verify.KindDouble]
	}
	if doubles == 0 {
		t.Error("nothing ran twice without the tick check: the verifier, or the plans, see nothing")
	}
	t.Logf("%d ticks ran twice in %d plans", doubles, controls)
}

// Without a guard at the sink, stale writes get through, and the verifier says so.
func TestControlWithoutGuard(t *testing.T) {
	stale, tokens := 0, 0
	for seed := uint64(80); tokens == 0 && seed < 480; seed++ { // a stale write is rare: 84 has the first one
		p := planOf(seed)
		if stale += schedtest.Play(t, p).Stale; stale == 0 {
			continue
		}
		p.Unguarded = true
		tokens += kinds(schedtest.Play(t, p))[verify.KindToken]
	}
	if tokens == 0 {
		t.Errorf("%d stale writes with a guard, no finding without", stale)
	}
}
