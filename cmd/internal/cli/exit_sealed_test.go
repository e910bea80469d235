package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// The answer of each command in a sealed namespace: sealedRefused has the refused command lines,
// sealedServed the commands that are served or do not use the namespace.
var (
	sealedRefused = []string{
		"jobs run a", "jobs pause a --reason x", "jobs rewind a --to 3h", "jobs backfill a --from 2h --to 1h",
		"jobs put a --handler h --schedule @daily", "jobs apply -f FILE", "jobs delete a", "runs rerun RUN", "generations promote g", "restore BACKUP",
	}
	sealedServed = []string{
		"jobs list", "jobs get", "jobs graph", "jobs export", "jobs backfills", "jobs resume", "jobs backfill-cancel", "runs list",
		"runs get", "runs logs", "runs cancel", "nodes list", "nodes drain", "nodes resume", "locks list", "locks get", "locks release", "locks bootstrap", "generations list",
		"ledger verify", "doctor", "backup", "audit list", "lock", "notify test",
		"move plan", "move seal", "move copy", "move open", "move status", "move abort",
		"config validate", "config print", "config schema", "config init", "cron explain", "run", "dev", "health", "version", "completion", "help",
	}
)

// Every command that a sealed namespace refuses exits with 5 and names the move; every command is
// covered.
func TestSealedNamespaceRefuses(t *testing.T) {
	t.Parallel()
	job := jobs.Job{Name: "a", Schedule: "@hourly"}
	p := cmdtest.Plant(t, job)
	run := p.Granted(job, "{}")
	p.End("a", run, jobs.OutcomeFailed, "")
	backup := t.TempDir() + "/backup"
	p.Wants(command.ExitDone, "", "", "backup", backup)
	m := newMover(t, "redis://"+p.Server.Addr(), "redis://"+redistest.Start(t).Addr())
	m.wants(command.ExitDone, "nothing runs any more", "seal", "--drain", "0s")

	stored := testkit.Write(t, "jobs:\n  - {name: b, handler: h, schedule: \"@daily\"}\n")
	files := strings.NewReplacer("FILE", stored, "RUN", run, "BACKUP", backup)
	known := slices.Clone(sealedServed)
	for _, line := range sealedRefused {
		known = append(known, line)
		code, stdout, stderr := cmdtest.Call(p.Env, "", strings.Fields(files.Replace(line))...)
		if code != command.ExitRefused || !strings.Contains(stderr, "closed") && !strings.Contains(stderr, "seal") {
			t.Errorf("%s: exit %d, %s%s; want %d", line, code, stdout, stderr, command.ExitRefused)
		}
	}
	each(cmdtest.NewApp().Root(), func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if !c.HasSubCommands() && !slices.ContainsFunc(known, func(line string) bool { return line == path || strings.HasPrefix(line, path+" ") }) {
			t.Errorf("add %s to sealedRefused or sealedServed", path)
		}
	})
}
