package schedtest_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest"
)

var again = flag.Int("sim.again", 0, "play the seed of -sim.seed so often and tell where a history first differs")

// TestAgain looks for what makes a seed's histories differ: go test -run TestAgain -v -sim.seed N -sim.again 50.
func TestAgain(t *testing.T) {
	p := planOf(max(1, *oneSeed))
	p.Wordy()
	first := schedtest.Play(t, p)
	for range max(1, *again) {
		r := schedtest.Play(t, p)
		if r.Digest == first.Digest {
			continue
		}
		missing := func(in, from []string) int {
			there := make(map[string]bool)
			for _, line := range in {
				there[line] = true
			}
			return slices.IndexFunc(from, func(line string) bool { return !there[line] })
		}
		for name, s := range map[string][2][]string{"one": {first.Story, r.Story}, "the other": {r.Story, first.Story}} {
			if i := missing(s[1], s[0]); i >= 0 {
				for _, line := range s[0][max(0, i-12):min(len(s[0]), i+4)] {
					t.Logf("%s: %.220s", name, line)
				}
			}
		}
		t.Fatalf("seed %d: digest %s, then %s", p.Seed, first.Digest, r.Digest)
	}
}
