package schedtest_test

import (
	"flag"
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
		schedtest.WantSame(t, first, schedtest.Play(t, p))
	}
}
