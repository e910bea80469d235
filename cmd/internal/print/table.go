// Package print writes data for people and programs: tables, JSON, words of numbers and times, files.
package print

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

// Column is a heading of a table with its properties.
type Column struct {
	Heading string
	whole   bool // its cells are never cut: people copy them
	Wide    bool // -o wide alone has it
	Instant bool // its cells are instants: the heading names the zone
}

// NewTable makes a table of a writer. A wide table has all columns, uncut.
func NewTable(out io.Writer, wide bool, columns ...Column) *Table {
	return &Table{out: out, Wide: wide, Cuts: !wide && IsTerminal(out), Zone: time.UTC, Columns: columns}
}

// Col is a column whose cells may be cut.
func Col(heading string) Column { return Column{Heading: heading} }

// Whole is a column whose cells are never cut: people copy them.
func Whole(heading string) Column { return Column{Heading: heading, whole: true} }

// Wide is a column that only a wide table has.
func Wide(heading string) Column { return Column{Heading: heading, Wide: true} }

// Instant is a column of instants.
func Instant(heading string) Column {
	return Column{Heading: heading, whole: true, Instant: true}
}

// Table collects rows and writes them below their headings. On a terminal, and unless it is wide,
// long cells are cut so that a row has tableWidth characters.
type Table struct {
	out     io.Writer
	Wide    bool           // has all columns, uncut
	Cuts    bool           // is cut to tableWidth
	Zone    *time.Location // of its instants
	Columns []Column
	Rows    [][]string
}

// Row adds a line, with a cell for each column. Line ends, tabs and the like are written as
// escapes: a job's error must not move the columns, or the cursor of a terminal.
func (t *Table) Row(cells ...string) {
	var shown []string
	for i, c := range t.Columns {
		switch {
		case c.Wide && !t.Wide:
		case i < len(cells):
			shown = append(shown, Cell(cells[i]))
		default:
			shown = append(shown, "")
		}
	}
	t.Rows = append(t.Rows, shown)
}

// Flush writes the table.
func (t *Table) Flush() error {
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return c.Wide && !t.Wide })
	var headings []string
	for _, c := range columns {
		if c.Instant {
			c.Heading += " (" + t.Zone.String() + ")"
		}
		headings = append(headings, c.Heading)
	}
	rows := append([][]string{headings}, t.Rows...)
	if t.Cuts {
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
func cut(columns []Column, rows [][]string) {
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

// At returns an instant in the table's zone: RFC 3339 when the table is wide, else to the second,
// as flags read it.
func (t *Table) At(s time.Time) string {
	if s.IsZero() {
		return ""
	}
	at := s.In(t.Zone)
	if t.Wide {
		return at.Format(spec.TimeLayout)
	}
	return strings.TrimSuffix(at.Format("2006-01-02 15:04:05.000"), ".000")
}
