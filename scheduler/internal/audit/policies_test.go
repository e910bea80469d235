package audit

import (
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Further attempts that no operator requested are counted, also attempts of a backfill's runs,
// which keep their trigger.
func TestReruns(t *testing.T) {
	for _, c := range []struct {
		trigger string
		attempt int
		want    int
	}{
		{"schedule", 9, 0}, // judged by its attempts before
		{"rerun", 2, 0}, {"rerun", 3, 1},
		{"backfill", 1, 0}, {"backfill", 2, 0}, {"backfill", 3, 1},
	} {
		tr := &trial{Case: &Case{}, report: &Report{}, job: Job{Name: "job", Versions: []Version{{Definition: jobs.Definition{Job: jobs.Job{RerunMax: 1}}}}}}
		tr.books.Rows = []ledger.Row{{Job: "job", Run: "r", Tick: 1, Attempt: c.attempt, Token: 1, Trigger: c.trigger, Outcome: jobs.OutcomeSucceeded}}
		if tr.reruns(); len(tr.report.Findings) != c.want {
			t.Errorf("attempt %d by %s: %v", c.attempt, c.trigger, tr.report.Findings)
		}
	}
}
