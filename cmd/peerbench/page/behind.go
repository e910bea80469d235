package page

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// clearly is by how much a figure must be better than another to be called better: a smaller
// difference may be reversed in another run.
const clearly = 1.1

// measures are the figures by which contenders are compared; less is better.
var measures = []struct {
	name, unit string
	of         func(figures.Summary) float64
}{
	{"lag p50", "ms", func(s figures.Summary) float64 { return s.P50 }},
	{"lag p99", "ms", func(s figures.Summary) float64 { return s.P99 }},
	{"commands", "a tick", func(s figures.Summary) float64 { return s.Commands }},
	{"CPU", "s per 1,000 ticks", figures.Summary.CPU},
	{"RSS of a node", "MiB", func(s figures.Summary) float64 { return s.NodeMiB }},
	{"RSS of Redis", "MiB", func(s figures.Summary) float64 { return s.RedisMiB }},
}

// Behind lists where peers are clearly better than Escapement, in Markdown. Peers that did not keep
// up are in no comparison.
func Behind(run figures.Run) string {
	var b strings.Builder
	all := run.Summaries()
	for _, ours := range all {
		if ours.Who != "ours" || ours.Problem != "" {
			continue
		}
		for _, m := range measures {
			var better []string
			for _, s := range all {
				// 0 is a contender without the measured resource.
				if f := m.of(s); s.Jobs == ours.Jobs && s.Who != "ours10" && s.Survived && f != 0 && clearly*f < m.of(ours) {
					better = append(better, fmt.Sprintf("%s %s", label(s), short(f)))
				}
			}
			if len(better) > 0 {
				fmt.Fprintf(&b, "- %s, %s: %s %s; %s\n", jobs(ours.Jobs), m.name, short(m.of(ours)), m.unit, strings.Join(better, ", "))
			}
		}
	}
	if b.Len() == 0 {
		return "Nobody was clearly better at anything.\n"
	}
	return b.String()
}

func jobs(n int) string {
	if n == 1 {
		return "1 job a second"
	}
	return thousands(n) + " jobs a second"
}
