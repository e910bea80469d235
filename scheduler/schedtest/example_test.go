package schedtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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

// Put your own jobs under faults, as the README does: one node dies between the grant and the start
// of its first run, another stands still in the middle of its work for longer than its lease.
func TestExample(t *testing.T) {
	sent := make(map[time.Time]int)
	r := schedtest.Run(t, schedtest.Plan{
		Seed: 1,
		Jobs: []jobs.Job{{Name: "mail", Schedule: "* * * * *", Func: mail(sent)}},
		Heal: 3 * time.Minute, // no fault from then on; everything must run again, in time
		For:  5 * time.Minute,
		Faults: []schedtest.Fault{
			{Do: schedtest.Crash, At: schedtest.BeforeStart, For: 2 * time.Second},
			{Do: schedtest.Pause, At: schedtest.AfterStart, For: 20 * time.Second}, // the lease is 15 s
		},
	})
	for tick, n := range sent {
		if n > 1 {
			t.Errorf("the mail of %s was sent %d times", tick, n)
		}
	}
	t.Logf("%d of %d ticks sent a mail; what became of all: %v", len(sent), r.Ticks, r.Verdicts)
}

// Play a timetable: a file has the events and the rows of history that must result. The file is the
// README's; its schedule overrides the job's own.
func TestExampleScenario(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const first = "# A report whose node dies"
	_, text, _ := strings.Cut(string(readme), first)
	text, _, _ = strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "report.txt")
	if err := os.WriteFile(file, []byte(first+text), 0o600); err != nil {
		t.Fatal(err)
	}
	made := 0
	type Report struct{ Month string }
	report := jobs.Job{Name: "report", Schedule: "@monthly", Func: jobs.Typed(func(context.Context, *jobs.Run, Report) error {
		made++
		return nil
	})}
	schedtest.Scenario{File: file, Jobs: []jobs.Job{report}}.Run(t)
	if made != 2 { // the node that died had not called it yet
		t.Errorf("the report was made %d times, want 2", made)
	}
}
