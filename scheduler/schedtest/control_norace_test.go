//go:build !race

package schedtest_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

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
	for seed := uint64(1); tokens == 0 && seed < 400; seed++ {
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
