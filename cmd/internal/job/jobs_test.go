package job

import (
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// A job's last outcome and its last success are shown however many runs have failed since.
func TestLastSuccess(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := cmdtest.Plant(t, yearly, jobs.Job{Name: "other", Schedule: "@yearly"})
	p.Wants(command.ExitDone, "other   @yearly", "", "jobs", "list")
	good := p.Granted(yearly, "1")
	p.End("yearly", good, jobs.OutcomeSucceeded, "")
	ended := cmdtest.Decode[ops.RunView](t, p.Env, "runs", "get", good).Ended
	for range 17 { // more rows than are read at first
		p.End("yearly", p.Granted(yearly, "1"), jobs.OutcomeFailed, "")
	}
	views := cmdtest.Decode[[]ops.JobView](t, p.Env, "jobs", "list")
	if j := views[1]; j.LastOutcome != jobs.OutcomeFailed || j.LastSuccess.IsZero() || !j.LastSuccess.Equal(ended) {
		t.Errorf("got %s, %v; want failed, %v", j.LastOutcome, j.LastSuccess, ended)
	}
	if j := views[0]; j.LastOutcome != 0 || !j.LastSuccess.IsZero() {
		t.Errorf("of a job that never ran: %s, %v", j.LastOutcome, j.LastSuccess)
	}
	p.Wants(command.ExitDone, "failed        "+(&print.Table{Zone: time.UTC}).At(ended), "", "jobs", "list")
}
