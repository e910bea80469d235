package inspect

import (
	"encoding/json"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// What a pending run waits for. A run of a backfill waits for the end of a pause, and not for the
// run that holds its job.
func TestWaitsFor(t *testing.T) {
	const now = 1_000_000
	definition, err := json.Marshal(jobs.Job{Name: "job", Schedule: "@hourly"}.WithDefaults(jobs.Defaults{}).Definition())
	if err != nil {
		t.Fatal(err)
	}
	s := query.Stored{Definition: definition}
	s.HolderRun = "other"
	paused := s
	paused.Pause = ledger.Window{From: 1, To: now + 1}
	here := Holding{Owner: "a"}
	for _, c := range []struct {
		trigger string
		at      int64
		s       query.Stored
		h       Holding
		want    string
	}{
		{"backfill", now, s, here, ""},
		{"backfill", now, paused, here, ": job is paused"},
		{"backfill", now, s, Holding{Orphan: true}, ": no living node holds the job"},
		{"backfill", now + 1000, s, here, " until 1970-01-01T00:16:41.000Z"},
		{"manual", now, s, here, ": job is held by run other"},
		{"manual", now, paused, here, ": job is held by run other"},
		{"after", now, paused, here, ": job is paused"},
	} {
		if got := waitsFor(ledger.Run{ID: "r", Job: "job", Trigger: c.trigger, Granted: c.at}, c.s, c.h, now); got != c.want {
			t.Errorf("%s at %d: %q, want %q", c.trigger, c.at, got, c.want)
		}
	}
}
