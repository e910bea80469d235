//go:build mutants

package schedtest_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

var (
	huntPlan  = flag.String("hunt.plan", "random", "the plan that TestHunt plays, see hunts")
	huntFirst = flag.Uint64("hunt.first", 1, "its first seed")
	huntSeeds = flag.Int("hunt.seeds", 20, "how many seeds of it")
	huntStory = flag.Bool("hunt.story", false, "tell the story of each seed")
	huntKind  = flag.String("hunt.kind", "", "end with the first seed that shows a finding of this kind; empty: play all")
)

// everyPlan is the name that stands for all of hunts, and as many random ones as it takes.
const everyPlan = "every plan"

// TestHunt plays seeds of one plan, or of all, and tells what was found, for TestMutants to read: one line for each
// kind at its first seed, and one that it came to the end. It does not fail: what a finding means depends on who
// asked.
func TestHunt(t *testing.T) {
	names := []string{*huntPlan}
	if *huntPlan == everyPlan {
		names = slices.Sorted(maps.Keys(hunts))
	}
	seen, played := make(map[verify.Kind]bool), 0
	for _, name := range names {
		h, known := hunts[name]
		if !known {
			t.Fatalf("there is no plan %q", name)
		}
		n := *huntSeeds
		if *huntPlan == everyPlan && name == "random" {
			n *= 20
		}
		for seed := *huntFirst; seed < *huntFirst+uint64(n) && !seen[verify.Kind(*huntKind)]; seed++ {
			played++
			r := schedtest.Play(t, h.plan(seed))
			if *huntStory {
				fmt.Fprintf(os.Stdout, "%s%v\n", r, r.Verdicts)
			}
			for _, f := range h.findings(r) {
				if !seen[f.Kind] {
					seen[f.Kind] = true
					fmt.Fprintf(os.Stdout, "hunt: found %s at seed %d: of %q: %s\n", f.Kind, seed, name, f)
				}
			}
		}
	}
	fmt.Fprintf(os.Stdout, "hunt: played %d\n", played)
}

// hunt is a plan of every seed, and what must be true of it beside the promises that every plan is held against.
type hunt struct {
	plan func(seed uint64) schedtest.Plan
	also func(r schedtest.Result) []verify.Finding // nil: nothing
}

func (h hunt) findings(r schedtest.Result) []verify.Finding {
	if h.also == nil {
		return r.Findings
	}
	return append(slices.Clone(r.Findings), h.also(r)...)
}
