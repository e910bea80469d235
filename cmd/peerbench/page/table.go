package page

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// notKept stands in place of lag and cost of contenders that ran less than half of the ticks: the
// few runs are not representative.
const notKept = "did not keep up"

// Table is the figures as Markdown: a row for each contender and number of jobs, and a line for an
// idle cluster.
func Table(run figures.Run) string {
	var b strings.Builder
	b.WriteString("| jobs a second | who | once | twice | missed | early | lag p50 / p99 / max, ms | commands, scripts a tick " +
		"| CPU s per 1,000 ticks: nodes + Redis | allocations a tick | RSS MiB: a node, Redis |\n")
	b.WriteString("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	var idle []string
	for _, s := range run.Summaries() {
		switch {
		case s.Problem != "":
			fmt.Fprintf(&b, "| %s | %s | no figures: %s | | | | | | | | |\n", thousands(s.Jobs), label(s), plain(s.Problem))
		case s.Due == 0:
			idle = append(idle, fmt.Sprintf("%s, %d nodes, no job due: %.0f commands, of scripts %.1f calls, and %s s of CPU (nodes) + %s (Redis) a second.",
				label(s), s.Nodes, s.Commands, s.Scripts, short(s.NodesCPU), short(s.RedisCPU)))
		case !s.Survived:
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %s | | | | |\n",
				thousands(s.Jobs), label(s), share(s.Once, s.Due), share(s.Twice, s.Due), share(s.Missed, s.Due), s.Early, notKept)
		default:
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %s / %s / %s | %s, %s | %s + %s | %.0f | %.0f, %.0f |\n",
				thousands(s.Jobs), label(s), share(s.Once, s.Due), share(s.Twice, s.Due), share(s.Missed, s.Due), s.Early,
				short(s.P50), short(s.P99), short(s.Max), short(s.Commands), short(s.Scripts), short(s.NodesCPU), short(s.RedisCPU), s.Allocs, s.NodeMiB, s.RedisMiB)
		}
	}
	if len(idle) > 0 {
		b.WriteString("\n" + strings.Join(idle, "\n") + "\n")
	}
	return b.String()
}

// label is a contender's title, with a star where other processes bent its figures.
func label(s figures.Summary) string {
	if s.Disturbed {
		return s.Title + " *"
	}
	return s.Title
}

// share is a part of all in percent; only none is 0 and only all is 100.
func share(part, all int) string {
	percent := 100 * float64(part) / float64(all)
	switch {
	case part == 0 || part == all:
		return fmt.Sprintf("%.0f %%", percent)
	case percent < 0.01:
		return "< 0.01 %"
	case percent > 99.99:
		return "> 99.99 %"
	case percent < 1 || percent > 99:
		return fmt.Sprintf("%.2f %%", percent)
	}
	return fmt.Sprintf("%.0f %%", percent)
}

// short is a figure with two or three digits that count.
func short(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f >= 100:
		return thousands(int(f + 0.5))
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.3f", f)
}

// thousands is a number with a comma before each three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// plain is a text that stays in one cell of a table.
func plain(s string) string {
	return strings.NewReplacer("\n", "; ", "|", "/").Replace(s)
}
