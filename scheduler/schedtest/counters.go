package schedtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counters count the events of a simulation: a plan in which nothing happens shows nothing.
type Counters map[string]int

// Add adds the counts of another simulation.
func (c Counters) Add(other Counters) {
	for what, n := range other {
		c[what] += n
	}
}

// never returns which of some counters have stayed at zero.
func (c Counters) never(shows []string) []string {
	return slices.DeleteFunc(slices.Clone(shows), func(what string) bool { return c[what] > 0 })
}

// String lists the counts by name, a line each.
func (c Counters) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%8d  %s\n", c[what], what)
	}
	return b.String()
}
