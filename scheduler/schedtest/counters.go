package schedtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counters say how often something happened that a simulation must have shown at least sometimes,
// or it has shown nothing: see Sometimes.
type Counters map[string]int

// Sometimes are the counters that must be above zero over a suite of plans. Which fault struck, and
// how often, is counted beside them as "fault: ...".
var Sometimes = []string{
	"failover between asking and claim", "failover between claim and start", "failover between start and settle",
	"stale write refused", "tick taken over", "lease expired while running",
	"unknown outcome found applied", "unknown outcome found not applied",
	"ran on version 0", "ran on version 1", "two versions ran ticks of one job",
	"Redis lost something: empty Redis", "Redis lost something: roll Redis back", "message came late", "run handed back",
	"script asked for again after it was flushed",
	"tick of shards", "shard taken over", "shards changed while open", "partial failure",
}

// Add adds the counts of another simulation.
func (c Counters) Add(other Counters) {
	for what, n := range other {
		c[what] += n
	}
}

// Never returns what of Sometimes has not happened.
func (c Counters) Never() []string {
	return slices.DeleteFunc(slices.Clone(Sometimes), func(what string) bool { return c[what] > 0 })
}

// String lists the counts by name, a line each.
func (c Counters) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%8d  %s\n", c[what], what)
	}
	return b.String()
}
