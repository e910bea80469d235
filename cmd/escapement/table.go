package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/escapement/escapement/scheduler"
)

const (
	// tableWidth is how wide a table is at most, without -o wide.
	tableWidth = 100
	// leastCut is how short a cell may be cut.
	leastCut = 8
)

// column is what a table shows below a heading.
type column struct {
	heading string
	whole   bool // its cells are never cut: somebody copies them
	wide    bool // -o wide alone has it
}

func col(heading string) column   { return column{heading: heading} }
func whole(heading string) column { return column{heading: heading, whole: true} }
func wide(heading string) column  { return column{heading: heading, wide: true} }

// table collects rows and writes them below their headings, in at most tableWidth columns unless it is wide.
type table struct {
	out     io.Writer
	wide    bool
	columns []column
	rows    [][]string
}

func (a *app) newTable(columns ...column) *table {
	return &table{out: a.stdout, wide: a.flags.output == outputWide, columns: columns}
}

// row adds a line, with a cell for each column. Line ends, tabs and the like are written as escapes: a job's error must not
// move the columns, or the cursor of a terminal.
func (t *table) row(cells ...string) {
	var shown []string
	for i, c := range t.columns {
		switch {
		case c.wide && !t.wide:
		case i < len(cells):
			shown = append(shown, cell(cells[i]))
		default:
			shown = append(shown, "")
		}
	}
	t.rows = append(t.rows, shown)
}

// flush writes the table.
func (t *table) flush() error {
	columns := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return c.wide && !t.wide })
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	rows := append([][]string{headings}, t.rows...)
	if !t.wide {
		cut(columns, rows)
	}
	tabs := newTabs(t.out)
	for _, cells := range rows {
		fmt.Fprintln(tabs, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return tabs.Flush()
}

func newTabs(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// cut shortens the widest columns until all have room.
func cut(columns []column, rows [][]string) {
	widths, total := make([]int, len(columns)), 0
	for i := range columns {
		for _, cells := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		total += widths[i] + 2 // the gap
	}
	for total -= 2; total > tableWidth; total-- {
		widest := -1
		for i, c := range columns {
			if !c.whole && widths[i] > leastCut && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, cells := range rows {
		for i, text := range cells {
			if r := []rune(text); len(r) > widths[i] {
				cells[i] = string(r[:widths[i]-3]) + "..."
			}
		}
	}
}

// at is an instant for a table: RFC 3339 when it is wide, else to the second, as flags read it.
func (t *table) at(s *scheduler.Stamp) string {
	if s == nil || t.wide {
		return stamp(s)
	}
	text, _ := strings.CutSuffix(strings.Replace(s.String(), "T", " ", 1), "Z")
	return strings.TrimSuffix(text, ".000")
}

// The words of -o.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
)

// checkOutput refuses other words of -o.
func (a *app) checkOutput() error {
	words := []string{outputTable, outputWide, outputJSON}
	if slices.Contains(words, a.flags.output) {
		return nil
	}
	return usagef("-o %s is not one of %s%s", quote(a.flags.output), strings.Join(words, ", "), didYouMean(a.flags.output, words))
}
