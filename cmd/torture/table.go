package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// shown is how many violations of a scenario are printed.
const shown = 10

// row is what one scenario showed.
type row struct {
	name string
	findings
	shares string
	notes  []string
}

func newRow(name string, f findings, lines []line, notes []string) row {
	ran := map[string]int{}
	begun := starts(lines)
	for _, l := range begun {
		ran[l.node]++
	}
	var shares []string
	for _, node := range slices.Sorted(maps.Keys(ran)) {
		shares = append(shares, node+" "+percent(ran[node], len(begun)))
	}
	return row{name: name, findings: f, shares: strings.Join(shares, ", "), notes: notes}
}

func (r row) result() string {
	if len(r.violations) > 0 {
		return fmt.Sprintf("BROKEN (%d)", len(r.violations))
	}
	return "holds"
}

// instead tells how the ticks that did not run are recorded.
func (r row) instead() string {
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(r.absent)) {
		words = append(words, fmt.Sprintf("%d %s", r.absent[reason], reason))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

// table is the program's answer.
type table struct{ rows []row }

func (t table) good() bool {
	return !slices.ContainsFunc(t.rows, func(r row) bool { return len(r.violations) > 0 })
}

func (t table) print(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "scenario\tresult\tticks\tran\trecorded instead\tnodes' shares\tlag p50 / p99 / max")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\t%s / %s / %s\n", r.name, r.result(), r.wanted, r.ran, r.instead(), r.shares,
			short(quantile(r.lags, 0.5)), short(quantile(r.lags, 0.99)), short(quantile(r.lags, 1)))
	}
	_ = tw.Flush() // words for a person on stdout
	fmt.Fprintln(w)
	for _, r := range t.rows {
		for _, n := range r.notes {
			fmt.Fprintf(w, "%-8s  %s\n", r.name, n)
		}
		for i, v := range r.violations {
			if i == shown {
				fmt.Fprintf(w, "%-8s  ... and %d more\n", r.name, len(r.violations)-shown)
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
