package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestBackupAndRestore takes a namespace to a file and back, as a person would.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	work := func(name string) jobs.Job { return jobs.Job{Name: name, Schedule: "@hourly"} }
	p := plant(t, work("billing-eu"), work("billing-us"), work("report"))
	p.granted(work("report"), `{"day": 1}`)
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	wants := func(code int, words string, stdin string, args ...string) (stdout string) {
		t.Helper()
		got, stdout, stderr := call(p.env, stdin, args...)
		if got != code || !strings.Contains(stderr, words) {
			t.Errorf("%v: exit %d, %s%s; want %d and %q", args, got, stdout, stderr, code, words)
		}
		return stdout
	}
	if got := decode[move.Totals](t, p.env, "backup", file); got.Jobs != 3 || got.Running != 1 {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	text := wants(exitDone, "3 jobs of escapement written to stdout: 1 run in flight", "", "backup", "-")
	wants(exitRefused, "3 jobs stay as they are, for the namespace has them: billing-eu, billing-us, report", "", "restore", file)
	wants(exitRefused, "not everything would be restored: 3 jobs would stay as they are", "", "restore", file, "--dry-run")
	p.client.FlushAll(t.Context())
	wants(exitDone, "2 jobs would be restored", "", "restore", file, "--job", "billing-*", "--dry-run")
	wants(exitNotFound, "has never been used", "", "jobs", "list")
	wants(exitRefused, "ends in line", text[:len(text)/2], "restore", "-")
	wants(exitUsage, "no pattern", "", "restore", file, "--job", "[")
	wants(exitFailed, "no such file", "", "restore", file+".gone")
	wants(exitDone, "2 jobs restored to escapement", text, "restore", "-", "--job", "billing-*")
	wants(exitRefused, "1 job restored to escapement", "", "restore", file)
	if list := decode[[]ops.JobView](t, p.env, "jobs", "list"); len(list) != 3 || list[2].Name != "report" {
		t.Errorf("%+v", list)
	}
	if run := decode[[]ops.RunView](t, p.env, "runs", "list", "--job", "report"); len(run) != 1 || run[0].Outcome != jobs.OutcomeRunning {
		t.Errorf("%+v", run)
	}
	wants(exitDone, "", "", "ledger", "verify")
}
