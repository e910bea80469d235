package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs/spec"
)

const (
	// tableWidth is a table's width on a terminal, without -o wide. Uncut columns may make it
	// wider.
	tableWidth = 100
	// leastCut is how short a cell may be cut.
	leastCut = 8
)

// column is a heading of a table with its properties.
type column struct {
	heading string
	whole   bool // its cells are never cut: people copy them
	wide    bool // -o wide alone has it
	instant bool // its cells are instants: the heading names the zone
}

func col(heading string) column   { return column{heading: heading} }
func whole(heading string) column { return column{heading: heading, whole: true} }
func wide(heading string) column  { return column{heading: heading, wide: true} }
func instant(heading string) column {
	return column{heading: heading, whole: true, instant: true}
}

// table collects rows and writes them below their headings. On a terminal, and unless it is wide,
// long cells are cut so that a row has tableWidth characters.
type table struct {
	out     io.Writer
	wide    bool
	cuts    bool
	zone    *time.Location // of its instants
	columns []column
	rows    [][]string
}

func (a *app) newTable(columns ...column) *table {
	wide := a.flags.output == outputWide
	return &table{out: a.stdout, wide: wide, cuts: !wide && isTerminal(a.stdout), zone: time.UTC, columns: columns}
}

// row adds a line, with a cell for each column. Line ends, tabs and the like are written as
// escapes: a job's error must not move the columns, or the cursor of a terminal.
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
		if c.instant {
			c.heading += " (" + t.zone.String() + ")"
		}
		headings = append(headings, c.heading)
	}
	rows := append([][]string{headings}, t.rows...)
	if t.cuts {
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

// at returns an instant in the table's zone: RFC 3339 when the table is wide, else to the second,
// as flags read it.
func (t *table) at(s time.Time) string {
	if s.IsZero() {
		return ""
	}
	at := s.In(t.zone)
	if t.wide {
		return at.Format("2006-01-02T15:04:05.000Z07:00")
	}
	return strings.TrimSuffix(at.Format("2006-01-02 15:04:05.000"), ".000")
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
	return usagef("-o %s is not one of %s%s", quote(a.flags.output), strings.Join(words, ", "), spec.DidYouMean(a.flags.output, words))
}
