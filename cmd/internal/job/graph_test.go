package job

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

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
