package ledger

import "testing"

// Judge is the audit of one job's books. Package audit imports this one, so a file of package ledger_test sets it.
var Judge func(JobBooks) []string

// sound says that the audit finds nothing in the books.
func (r *rig) sound(t *testing.T) {
	t.Helper()
	unread := must(r.led.EachJob(t.Context(), "", func(b JobBooks) {
		if wrong := Judge(b); len(wrong) > 0 {
			t.Fatalf("the books of %s do not close: %q", b.Entry.Job, wrong)
		}
	}))
	if len(unread.LeftAlone) > 0 {
		t.Fatalf("these cannot be read: %+v", unread.LeftAlone)
	}
}
