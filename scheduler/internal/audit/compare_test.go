package audit

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// A run by hand that was granted and began may be recorded as waiting only where Redis has lost the
// grant since.
func TestGrantThatRedisHasLost(t *testing.T) {
	began := time.UnixMilli(1_000_000)
	for name, c := range map[string]struct {
		lost []Disturbance
		want int
	}{
		"Redis has lost the grant": {[]Disturbance{{Span: Span{From: began, Until: began}, Loses: true}}, 0},
		"Redis has lost nothing":   {nil, 1},
	} {
		tr := &trial{Case: &Case{Disturbed: c.lost, Read: began.Add(time.Minute)}, report: &Report{}, job: Job{Name: "job"}}
		r := &run{id: "hand", at: -1, lease: &ledger.Run{Job: "job", ID: "hand", Tick: 1, Attempt: 1}}
		tr.recorded(r, Write{At: began, Job: "job", Tick: time.UnixMilli(1), Run: "hand", Token: 7, Node: "n", Attempt: 1, Shards: 1, Phase: Start})
		if len(tr.report.Findings) != c.want {
			t.Errorf("%s: %v", name, tr.report.Findings)
		}
	}
}

// A rewind may lead back to ticks of the schedule from before the job existed, and to no other
// instant.
func TestTickFromBeforeTheFirst(t *testing.T) {
	t.Parallel()
	schedule, err := cron.Parse("@every 2s", "")
	if err != nil {
		t.Fatal(err)
	}
	began := time.UnixMilli(1_000_000)
	versions := []Version{{Schedule: schedule, Possible: Span{From: began}}}
	for name, c := range map[string]struct {
		tick    time.Time
		rewound bool
		want    bool
	}{
		"a tick, rewound":       {began.Add(-2 * time.Second), true, true},
		"a tick, not rewound":   {began.Add(-2 * time.Second), false, false},
		"no tick, rewound":      {began.Add(-time.Second), true, false},
		"a tick since it began": {began.Add(2 * time.Second), true, false},
	} {
		tr := &trial{Case: &Case{}, job: Job{Versions: versions, Rewound: c.rewound}}
		if got := tr.beforeTheFirst(c.tick); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A requested attempt holds the job from its own start, or from the start of the failed attempt
// that another node was to retry.
func TestAttemptAskedForAndDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on   jobs.RetryOn
		want int64
	}{
		"no other node makes it": {jobs.RetrySameNode, 9000},
		"another node makes it":  {jobs.RetryOtherNode, 1000},
	} {
		d := jobs.Definition{Job: jobs.Job{Retry: jobs.Retry{Max: 1, On: c.on}}}
		tr := &trial{Case: &Case{}, job: Job{Versions: []Version{{Definition: d}}}, reran: map[string]bool{"second": true}}
		tr.books.Rows = []ledger.Row{
			{Run: "first", Tick: 1000, Attempt: 1, Started: 1000, At: 2000, Outcome: jobs.OutcomeFailed},
			{Run: "second", Tick: 1000, Attempt: 2, Started: 9000, At: 9500, Outcome: jobs.OutcomeSucceeded},
		}
		if got := tr.heldFrom(&tr.books.Rows[1]); got != c.want {
			t.Errorf("%s: held from %d, want %d", name, got, c.want)
		}
	}
}
