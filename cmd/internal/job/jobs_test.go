package job

import (
	"strings"
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

// TestGraph shows jobs below their upstreams, and no job without followers and upstreams.
func TestGraph(t *testing.T) {
	job := func(name string, when jobs.When, after ...string) jobs.Job {
		j := jobs.Job{Name: name, After: after, When: when}
		if len(after) == 0 {
			j.Schedule = "@yearly"
		}
		return j
	}
	p := cmdtest.Plant(t, job("alone", 0), job("check", 0), job("extract", 0), job("load", 0, "extract", "check"), job("alert", jobs.WhenFailed, "load"),
		job("orphan", jobs.WhenAny, "gone"))
	want := `JOB        RUNS                     LAST (UTC)  LAST OUTCOME
check      @yearly                  -           -
  load     after extract, check     -           -
    alert  after load, when failed  -           -
extract    @yearly                  -           -
  load     above                    -           -
orphan     after gone, when any     -           -
`
	if out := p.Wants(command.ExitDone, "JOB", "", "jobs", "graph"); strings.TrimSpace(out) != strings.TrimSpace(want) {
		t.Errorf("got\n%s", out)
	}
	cmdtest.Plant(t, job("single", 0)).Wants(command.ExitDone, "JOB", "no job follows another one\n", "jobs", "graph")
	list := cmdtest.Decode[[]ops.GraphJob](t, p.Env, "jobs", "graph")
	if len(list) != 5 || list[4].When != "any" || list[3].After[1] != "check" || list[1].Followers[0] != "load" {
		t.Errorf("got %+v", list)
	}
}
