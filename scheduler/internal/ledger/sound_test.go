package ledger

import (
	"context"
	"fmt"
	"testing"
)

// Judge is the audit of one job's books. Package audit imports this one, so a file of package
// ledger_test sets it.
var Judge func(JobSnapshot) []string

// unsound is what the audit finds in the books, and what of them cannot be read but definitions.
func (l *Ledger) unsound(ctx context.Context) (wrong []string) {
	unread := must(l.EachJob(ctx, "", func(b JobSnapshot) { wrong = append(wrong, Judge(b)...) }))
	for _, left := range unread.UnknownFormat {
		if left.Kind != "definition" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", left.Key, left.What))
		}
	}
	return wrong
}

// sound checks that the audit finds nothing.
func (r *rig) sound(t *testing.T) {
	t.Helper()
	if wrong := r.led.unsound(t.Context()); len(wrong) > 0 {
		t.Fatalf("the books are not in order: %q", wrong)
	}
}
