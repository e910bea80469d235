package tool

import (
	"testing"

	"github.com/escapement/escapement/scheduler/ops"
)

// TestProblemText has one cure below what it is for, and nothing that moves a cursor.
func TestProblemText(t *testing.T) {
	got := problemText([]ops.Problem{
		{Code: "a", Severity: "error", Kind: "job", On: "x", Text: "one\x1b", Cure: "do it"},
		{Code: "a", Severity: "error", Kind: "job", On: "y", Text: "two", Cure: "do it"},
		{Code: "a", Severity: "error", Kind: "job", Text: "and 3 more", Cure: "do it", Count: 3},
		{Code: "b", Severity: "warning", Kind: "node", On: "n", Text: "three", Cure: "wait"},
	})
	want := "error    job x: one\\x1b\nerror    job y: two\nerror    and 3 more\n         cure: do it\nwarning  node n: three\n         cure: wait\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
