package job

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Jobs are put, exported, applied from the file that was exported, and deleted, while a node with
// their handler runs.
func TestStoredJobs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	reg := jobs.NewRegistry()
	work := func(context.Context, *jobs.Run) error { return nil }
	if err := errors.Join(reg.Handle("report", work), reg.Add(jobs.Job{Name: "beat", Schedule: "@hourly", Func: work})); err != nil {
		t.Fatal(err)
	}
	n, err := scheduler.New(client, reg, scheduler.Config{Name: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + server.Addr()}
	run := func(code int, out, words string, args ...string) string {
		t.Helper()
		got, stdout, stderr := cmdtest.Call(env, "", args...)
		if got != code || !strings.Contains(stdout, out) || !strings.Contains(stderr, words) {
			t.Errorf("%s: exit %d, %s%s; want %d, %s, %s", strings.Join(args, " "), got, stdout, stderr, code, out, words)
		}
		return stdout
	}
	put := func(name string) []string {
		return []string{"jobs", "put", name, "--handler", "report", "--schedule", "* * * * * *", "--timeout", "5s", "--payload", `{"tenant": 7}`}
	}
	cmdtest.Eventually(t, "the handler is declared", func() bool {
		code, _, _ := cmdtest.Call(env, "", append(put("tenant/7"), "--dry-run")...)
		return code == command.ExitDone
	})
	run(command.ExitNotFound, "", "no job tenant/7 is stored", "jobs", "export", "tenant/7")
	run(command.ExitDone, "", "job tenant/7 is stored: version 2", put("tenant/7")...)
	run(command.ExitRefused, "", "put job tenant/7: it is there already: the version of 2", append(put("tenant/7"), "--new")...)
	run(command.ExitRefused, "", "delete job beat: held by a; take the job out of their configuration", "jobs", "remove", "beat")
	run(command.ExitRefused, "", `handler: no node has declared a handler "nope"; declared are report`, "jobs", "put", "x", "--handler", "nope", "--schedule", "@hourly")
	cmdtest.Eventually(t, "it has run", func() bool {
		_, out, _ := cmdtest.Call(env, "", "runs", "list", "--job", "tenant/7", "--outcome", "succeeded", "-o", "json")
		return strings.Contains(out, `"outcome": "succeeded"`)
	})
	run(command.ExitDone, "\nhandler       report {\"tenant\":7}\n", "", "jobs", "get", "tenant/7")
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	exported := run(command.ExitDone, "tenant: 7", "", "jobs", "export")
	for _, step := range []struct{ old, new, out, words string }{
		{"", "", "", "0 of 1 jobs differ"},
		{"tenant: 7", "tenant: 8", "", "1 of 1 jobs differ"},
		{"timeout: 5s", "timeout: 6s", "", "1 of 1 jobs differ"},
	} {
		exported = strings.ReplaceAll(exported, step.old, step.new)
		if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
			t.Fatal(err)
		}
		if step.new != "" {
			setting, _, _ := strings.Cut(step.new, ":")
			setting = strings.ReplaceAll(setting, "tenant", "payload")
			run(command.ExitDone, step.out, "job tenant/7 differs: "+setting+"\n", "jobs", "apply", "-f", file, "--dry-run")
		}
		run(command.ExitDone, step.out, step.words, "jobs", "apply", "-f", file)
	}
	run(command.ExitDone, `"tenant": 8`, "", "jobs", "export", "-o", "json")
	run(command.ExitDone, "", "job tenant/9 is stored", put("tenant/9")...)
	run(command.ExitDone, "", "1 of 1 jobs differ", "jobs", "apply", "-f", file, "--prune", "tenants") // tenant/9 has no managed_by
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(exported, "tenant/7", "tenant/8")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(command.ExitDone, "", "job tenant/7 would be deleted", "jobs", "apply", "-f", file, "--prune", "tenants", "--dry-run")
	run(command.ExitDone, "", "job tenant/7 is deleted", "jobs", "apply", "-f", file, "--prune", "tenants")
	run(command.ExitDone, "managed_by: tenants", "", "jobs", "export", "tenant/8")
	run(command.ExitDone, "", "", "jobs", "export", "tenant/9")
	if err := os.WriteFile(file, []byte("jobs:\n- {name: a, handlr: report}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(command.ExitRefused, "", "refused: "+file+": line 2: job a: handlr: unknown key; did you mean handler", "jobs", "apply", "-f", file)
	run(command.ExitFailed, "", "no such file", "jobs", "apply", "-f", file+".none")
	run(command.ExitDone, "", "job mail/8 is stored", "jobs", "put", "mail/8", "--handler", "report", "--after", "tenant/8", "--when", "any", "--retry-max", "3")
	run(command.ExitDone, "after:\n        - tenant/8\n      when: any", "", "jobs", "export", "mail/8")
	both := strings.ReplaceAll(exported, "tenant/7", "tenant/10")
	if err := os.WriteFile(file, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		run(command.ExitRefused, "", `job mail/8: after: "tenant/8" would be deleted, for the file has it no longer; keep that job`, "jobs", "apply", "-f", file, "--prune", "tenants", dry)
	}
	run(command.ExitNotFound, "", "no job tenant/10 is stored", "jobs", "export", "tenant/10")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(exported, "tenant/7", "tenant/8")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(command.ExitRefused, "", `job tenant/8: managed_by: "tenants" manages it; take it out of the file, or write managed_by: others`, "jobs", "apply", "-f", file, "--prune", "others")
	run(command.ExitDone, "managed_by: tenants", "", "jobs", "export", "tenant/8")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(exported, "tenant/7", "tenant/8\n      managed_by: others")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(command.ExitDone, "", "job tenant/8 is stored", "jobs", "apply", "-f", file, "--prune", "others")
	cmdtest.Eventually(t, "mail/8 is registered", func() bool {
		_, out, _ := cmdtest.Call(env, "", "jobs", "graph")
		return strings.Contains(out, "mail/8")
	})
	run(command.ExitDone, "", "jobs that follow tenant/8 have no more ticks: mail/8; delete them too", "jobs", "delete", "tenant/8")
	run(command.ExitDone, "", "job tenant/11 is stored", append(put("tenant/11"), "--managed-by", "tenants")...)
	cmdtest.Eventually(t, "the program has a job that follows tenant/11", func() bool {
		return n.Add(jobs.Job{Name: "digest", After: []string{"tenant/11"}, Func: work}) == nil
	})
	cmdtest.Eventually(t, "it is registered", func() bool {
		_, out, _ := cmdtest.Call(env, "", "jobs", "graph")
		return strings.Contains(out, "digest")
	})
	run(command.ExitRefused, "", `job digest: after: "tenant/11" would be deleted, for the file has it no longer; keep that job`, "jobs", "apply", "-f", file, "--prune", "tenants")
	run(command.ExitDone, "managed_by: tenants", "", "jobs", "export", "tenant/11")
	run(command.ExitDone, "", "job later is stored", "jobs", "put", "later", "--handler", "report", "--schedule", "@hourly", "--start-at", "+10s", "--end-at", "2199-01-01 02:00", "--tz", "Europe/Berlin")
	run(command.ExitDone, `end_at: "2199-01-01T01:00:00Z"`, "", "jobs", "export", "later")
	run(command.ExitDone, "start_at: \"20", "", "jobs", "export", "later")
	run(command.ExitUsage, "", `"foo" for "--overlap" flag: "foo" is not one of skip, queue, replace, allow`, "jobs", "put", "x", "--handler", "report", "--schedule", "@hourly", "--overlap", "foo")
	run(command.ExitRefused, "", "max_runs: -1", "jobs", "put", "x", "--handler", "report", "--schedule", "@hourly", "--max-runs", "-1")
	run(command.ExitDone, "", "job tenant/9 is deleted, with its history", "jobs", "delete", "tenant/9")
	run(command.ExitNotFound, "", "", "jobs", "get", "tenant/9")
	run(command.ExitNotFound, "", "\"tenant/9\" in namespace escapement", "jobs", "delete", "tenant/9")
}
