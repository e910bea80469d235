//go:build !race

package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// TestExportWorld: whatever nodes and operators have done, a copy holds the same of every job, the two servers agree, and so
// does the digest, in however many partitions. Copied back, it is the same once more.
func TestExportWorld(t *testing.T) {
	useScripts(t, steered...)
	for seed := *firstSeed; seed < *firstSeed+6; seed++ {
		digests := map[string]bool{}
		pieces := 0
		tr := newTrace(seed, realRig(t, traceConfig), embeddedRig(t, traceConfig))
		tr.world.sharded = seed%2 == 0
		tr.run(t, 400, func() bool { return len(tr.all()) > 0 })
		tr.report(t, seed)
		for _, r := range tr.rigs {
			quiet(t, r, tr.world)
			from := r.led
			for i, n := range []int{int(seed), 5, 2} {
				to := fillFrom(t, r.client, from, fmt.Sprintf("copy%d", i), n, digests)
				want, got := byJob(t, r.client, from.cfg.Namespace), byJob(t, r.client, to.cfg.Namespace)
				for field := range want { // what is kept of a row that has left
					if _, ok := got[field]; !ok && strings.HasPrefix(field, "kept ") {
						delete(want, field)
					}
				}
				for _, d := range differences(want, got) {
					t.Errorf("seed %d, %s, %d partitions: %s", seed, r.name, n, d)
				}
				from, pieces = to, pieces+len(got)
			}
			verified, err := from.Verify(t.Context(), "")
			if before := must(r.led.Verify(t.Context(), "")); err != nil || len(verified) != len(before) {
				t.Errorf("seed %d: the copy breaks %v, the original %v, %v", seed, verified, before, err)
			}
		}
		if len(digests) != 1 || pieces < 100 {
			t.Errorf("seed %d: digests %v of %d pieces", seed, digests, pieces)
		}
		t.Logf("seed %d: %d pieces in 6 copies", seed, pieces)
	}
}
