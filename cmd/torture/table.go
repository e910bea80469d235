//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// shown is how many findings of a scenario are printed.
const shown = 10

// row is the result of one scenario.
type row struct {
	name     string
	findings []judge.Finding
	report   judge.Report
	lags     []time.Duration
	shares   string
	notes    []string
}

func newRow(name string, s *stage) row {
	ran := map[string]int{}
	begun := starts(s.lines)
	for _, l := range begun {
		ran[l.node]++
	}
	var shares []string
	for _, node := range slices.Sorted(maps.Keys(ran)) {
		shares = append(shares, node+" "+percent(ran[node], len(begun)))
	}
	return row{name: name, findings: s.findings, report: s.report, lags: lags(begun, func(line) bool { return true }), shares: strings.Join(shares, ", "), notes: s.notes}
}

func (r row) result() string {
	if len(r.findings) > 0 {
		return fmt.Sprintf("BROKEN (%d)", len(r.findings))
	}
	return "holds"
}

// ran is how many ticks started.
func (r row) ran() int { return r.report.Verdicts[judge.Satisfied] + r.report.Verdicts[judge.Delayed] }

// instead lists the verdicts of the ticks that did not start.
func (r row) instead() string {
	var words []string
	for _, v := range slices.Sorted(maps.Keys(r.report.Verdicts)) {
		if v != judge.Satisfied && v != judge.Delayed {
			words = append(words, fmt.Sprintf("%d %s", r.report.Verdicts[v], v))
		}
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

// table is the program's answer.
type table struct{ rows []row }

func (t table) good() bool {
	return !slices.ContainsFunc(t.rows, func(r row) bool { return len(r.findings) > 0 })
}

func (t table) print(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "scenario\tresult\tticks\tran\tinstead\tnodes' shares\tlag p50 / p99 / max")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\t%s / %s / %s\n", r.name, r.result(), r.report.Ticks, r.ran(), r.instead(), r.shares,
			short(quantile(r.lags, 0.5)), short(quantile(r.lags, 0.99)), short(quantile(r.lags, 1)))
	}
	_ = tw.Flush() // words for a person on stdout
	fmt.Fprintln(w)
	for _, r := range t.rows {
		for _, n := range r.notes {
			fmt.Fprintf(w, "%-8s  %s\n", r.name, n)
		}
		if r.report.Stale+r.report.Excused > 0 {
			fmt.Fprintf(w, "%-8s  lines after a newer token, for a guard to refuse: %d; faults that writes lost by Redis excuse: %d\n", r.name, r.report.Stale, r.report.Excused)
		}
		for i, v := range r.findings {
			if i == shown {
				fmt.Fprintf(w, "%-8s  ... and %d more\n", r.name, len(r.findings)-shown)
				break
			}
			fmt.Fprintf(w, "%-8s  %s\n", r.name, v)
		}
	}
}

// short is a duration for people.
func short(d time.Duration) string {
	if d.Abs() < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
