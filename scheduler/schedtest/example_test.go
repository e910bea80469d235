package schedtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest"
)

// mail is what a job of yours might do: work for a while, then act, if it may still.
func mail(sent map[time.Time]int) jobs.Func {
	return func(ctx context.Context, run *jobs.Run) error {
		time.Sleep(200 * time.Millisecond) // virtual time: it costs nothing
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sent[run.Tick()]++
		return nil
	}
}

// Put your own jobs under faults: a node that dies between the grant and the start of its second run, and one
// that is stopped in the middle of its work for longer than its lease.
func TestExample(t *testing.T) {
	sent := make(map[time.Time]int)
	r := schedtest.Run(t, schedtest.Plan{
		Seed: 1,
		Jobs: []jobs.Job{{Name: "mail", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: mail(sent)}},
		Heal: 15 * time.Second, // then everything must run again, in time
		For:  35 * time.Second,
		Faults: []schedtest.Fault{
			{Do: schedtest.Crash, At: schedtest.BeforeStart, Nth: 2, For: 2 * time.Second},
			{Do: schedtest.Pause, At: schedtest.AfterStart, Nth: 3, For: 6 * time.Second},
		},
	})
	for tick, n := range sent {
		if n > 1 {
			t.Errorf("the mail of %s was sent %d times", tick, n)
		}
	}
	t.Logf("%d of %d ticks sent a mail; what became of all: %v", len(sent), r.Ticks, r.Verdicts)
}

// Play a time table: what happens stands in a file, and the rows of history that must come of it.
func TestExampleScenario(t *testing.T) {
	made := 0
	report := jobs.Job{Name: "report", Schedule: "*/5 * * * *", Func: func(context.Context, *jobs.Run) error {
		made++
		return nil
	}}
	schedtest.Scenario{File: "testdata/example/report.txt", Jobs: []jobs.Job{report}}.Run(t)
	if made != 2 { // the node that died had not called it yet
		t.Errorf("the report was made %d times, want 2", made)
	}
}
