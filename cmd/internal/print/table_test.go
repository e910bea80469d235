package print

import (
	"strings"
	"testing"
)

// TestTablesAreHarmless keeps the words of a job from moving the columns or the terminal's cursor.
func TestTablesAreHarmless(t *testing.T) {
	var out strings.Builder
	w := NewTable(&out, false, Col("A"), Col("B"))
	w.Row("", "x\ty\nz\x1b[31m\u009b")
	w.Row("e", "\u202evil\u2066\u200f ünïcode עברית 👩\u200d🚀")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "A  B\n-  x\\x09y\\x0az\\x1b[31m\\x9b\ne  \\u202evil\\u2066\\u200f ünïcode עברית 👩\u200d🚀\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	const text = "a\tb\x1b[2J\r\nc"
	if got := Output(text, false); got != text+"\n" {
		t.Errorf("into a file: %q", got)
	}
	if got := Output(text, true); got != "a\tb\\x1b[2J\\x0d\nc\n" {
		t.Errorf("on a terminal: %q", got)
	}
}

// On a terminal a table is cut to 100 columns, its widest cells first, except cells that people
// copy. In a pipe, and in a wide table, no cell is cut.
func TestTablesFit(t *testing.T) {
	long, id := strings.Repeat("n", 90), strings.Repeat("i", 36)
	for _, test := range []struct {
		wide, terminal bool
	}{{false, true}, {false, false}, {true, true}} {
		var out strings.Builder
		w := NewTable(&out, test.wide, Col("NAME"), Whole("RUN"), Col("ST"), Wide("MORE"))
		w.Cuts = w.Cuts || test.terminal && !w.Wide // a test has no terminal
		w.Row(long, id, "ok", "more")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		cuts := test.terminal && !test.wide
		for line := range strings.Lines(out.String()) {
			if n := len(line) - 1; cuts && n > tableWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if got := out.String(); !strings.Contains(got, id) || strings.Contains(got, long) == cuts || strings.Contains(got, "more") != test.wide {
			t.Errorf("%+v:\n%s", test, got)
		}
	}
}
