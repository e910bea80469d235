package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// A backfill is begun, shown, refused beside another one, and cancelled; a dry run begins nothing.
func TestBackfillCommands(t *testing.T) {
	p := cmdtest.Plant(t, jobs.Job{Name: "hourly", Schedule: "@hourly"})
	from := time.Now().UTC().Truncate(time.Hour).Add(-999 * time.Hour)
	at := func(n int) string { return from.Add(time.Duration(n) * time.Hour).Format(time.RFC3339) }
	span := []string{"jobs", "backfill", "hourly", "--from", at(0), "--to", at(999)}
	first, last := ops.FormatTime(from), ops.FormatTime(from.Add(999*time.Hour))
	p.Wants(command.ExitDone, "1,000 ticks\n"+first+"\n", "", append(span, "--dry-run")...)
	p.Wants(command.ExitDone, "\n...\n", "", append(span, "--dry-run")...)
	if plan := cmdtest.Decode[ops.BackfillPlan](t, p.Env, append(span, "--dry-run")...); plan.Ticks != 1000 || plan.ID != "" || ops.FormatTime(plan.Last[2]) != last {
		t.Errorf("the plan: %+v", plan)
	}
	if all := cmdtest.Decode[[]ops.BackfillView](t, p.Env, "jobs", "backfills"); len(all) > 0 {
		t.Errorf("a dry run has begun %+v", all)
	}
	for _, refused := range [][]string{
		{"no tick from", "jobs", "backfill", "hourly", "--from", from.Add(time.Minute).Format(time.RFC3339), "--to", from.Add(2 * time.Minute).Format(time.RFC3339)},
		{"give the earlier end as from", "jobs", "backfill", "hourly", "--from", at(2), "--to", at(1)},
		{"split the range", "jobs", "backfill", "hourly", "--from", "2020-01-01", "--to", at(1)},
		{"an instant that is over", "jobs", "backfill", "hourly", "--from", at(1), "--to", "2099-01-01"},
		{"parallel is 101; from 1 to 100", "jobs", "backfill", "hourly", "--from", at(1), "--to", at(2), "--parallel", "101"},
		{"none is under way", "jobs", "backfill-cancel", "hourly"},
	} {
		p.Wants(command.ExitRefused, "", refused[0], refused[1:]...)
	}
	p.Wants(command.ExitUsage, "", "from 1 to 100", "jobs", "backfill", "hourly", "--from", at(1), "--to", at(2), "--parallel", "0")
	p.Wants(command.ExitNotFound, "", "did you mean hourly", "jobs", "backfill", "hourli", "--from", at(1), "--to", at(2))
	p.Wants(command.ExitNotFound, "", "did you mean hourly", "jobs", "backfills", "hourli")

	id := p.Wants(command.ExitDone, "-", "1,000 ticks of job hourly, from "+first+" to "+last, append(span, "--parallel", "4", "--reason", "wrong prices")...)
	p.Wants(command.ExitRefused, "", "backfill "+id+" of the job is under way", span...)
	p.Wants(command.ExitDone, "0 of 1000", "", "jobs", "backfills", "hourly")
	all := cmdtest.Decode[[]ops.BackfillView](t, p.Env, "jobs", "backfills")
	if len(all) != 1 || all[0].ID != id || all[0].State != "going" || all[0].Parallel != 4 || all[0].Author != "ann" {
		t.Errorf("listed are %+v", all)
	}
	p.Wants(command.ExitDone, "", "backfill "+id+" of job hourly is cancelled after 0 of 1000 ticks", "jobs", "backfill-cancel", "hourly", "--reason", "wrong range")
	if v := cmdtest.Decode[ops.BackfillView](t, p.Env, "jobs", "backfill-cancel", "hourly"); v.State != "cancelled" || v.By != "ann" || v.Reason != "wrong range" {
		t.Errorf("cancelled again: %+v", v)
	}
	rows, err := p.Ops.Audit(t.Context(), ops.ActionFilter{})
	out := fmt.Sprintf("%+v", rows.Items)
	if err != nil {
		t.Error(err)
	}
	for _, words := range []string{"jobs backfill", "wrong prices", id + ": 1000 ticks", "jobs backfill-cancel", "wrong range"} {
		if !strings.Contains(out, words) {
			t.Errorf("the audit does not say %q:\n%s", words, out)
		}
	}
}
