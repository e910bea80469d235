//go:build !race

package schedtest_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest"
)

// The same seed gives the same history, line by line and message by message, however many goroutines run at
// once. `make sim-same` compares builds with and without the race detector besides.
func TestSameSeedSameHistory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	different := make(map[string]bool)
	for seed := range uint64(8) {
		var first schedtest.Result
		for i, procs := range []int{1, 2, 8} {
			runtime.GOMAXPROCS(procs)
			r := schedtest.Play(t, planOf(seed))
			if i == 0 {
				first = r
			}
			if r.Digest != first.Digest || !slices.Equal(r.Story, first.Story) {
				t.Errorf("seed %d on %d cores: digest %s, on one %s", seed, procs, r.Digest, first.Digest)
			}
		}
		different[first.Digest] = true
	}
	if len(different) != 8 {
		t.Errorf("8 seeds gave %d histories", len(different))
	}
}
