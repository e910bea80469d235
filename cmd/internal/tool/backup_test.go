package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestBackupAndRestore takes a namespace to a file and back, as a person would.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	work := func(name string) jobs.Job { return jobs.Job{Name: name, Schedule: "@hourly"} }
	p := cmdtest.Plant(t, work("billing-eu"), work("billing-us"), work("report"))
	p.Granted(work("report"), `{"day": 1}`)
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	wants := func(code int, words string, stdin string, args ...string) (stdout string) {
		t.Helper()
		got, stdout, stderr := cmdtest.Call(p.Env, stdin, args...)
		if got != code || !strings.Contains(stderr, words) {
			t.Errorf("%v: exit %d, %s%s; want %d and %q", args, got, stdout, stderr, code, words)
		}
		return stdout
	}
	if got := cmdtest.Decode[move.Totals](t, p.Env, "backup", file); got.Jobs != 3 || got.Running != 1 {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	text := wants(command.ExitDone, "3 jobs of escapement written to stdout: 1 run in flight", "", "backup", "-")
	wants(command.ExitRefused, "3 jobs stay as they are, for the namespace has them: billing-eu, billing-us, report", "", "restore", file)
	wants(command.ExitRefused, "not everything would be restored: 3 jobs would stay as they are", "", "restore", file, "--dry-run")
	p.Client.FlushAll(t.Context())
	wants(command.ExitDone, "2 jobs would be restored", "", "restore", file, "--job", "billing-*", "--dry-run")
	wants(command.ExitNotFound, "has never been used", "", "nodes", "list")
	wants(command.ExitRefused, "ends in line", text[:len(text)/2], "restore", "-")
	wants(command.ExitUsage, "no pattern", "", "restore", file, "--job", "[")
	wants(command.ExitFailed, "no such file", "", "restore", file+".gone")
	wants(command.ExitDone, "2 jobs restored to escapement", text, "restore", "-", "--job", "billing-*")
	wants(command.ExitRefused, "1 job restored to escapement", "", "restore", file)
	if list, err := p.Ops.ListJobs(t.Context(), ops.JobFilter{}); err != nil || len(list.Items) != 3 || list.Items[2].Name != "report" {
		t.Errorf("%+v, %v", list, err)
	}
	if run, err := p.Ops.ListRuns(t.Context(), ops.RunFilter{Job: "report"}); err != nil || len(run.Items) != 1 || run.Items[0].Outcome != jobs.OutcomeRunning {
		t.Errorf("%+v, %v", run, err)
	}
	wants(command.ExitDone, "", "", "ledger", "verify")
}
