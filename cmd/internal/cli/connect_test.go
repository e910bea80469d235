package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// TestOverTheAPI: commands print the same over the API as from Redis, with the same exit codes, and
// the audit has the author of each act.
func TestOverTheAPI(t *testing.T) {
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "0 0 1 1 *"})
	in, err := ops.New(p.Client, "")
	if err != nil {
		t.Fatal(err)
	}
	access := opshttp.Access{Tokens: map[string]opshttp.Identity{"operators-token": {Name: "ann", Role: ops.Operator}, "viewers-token": {Name: "wall", Role: ops.Viewer}}}
	server := httptest.NewServer(opshttp.New(in, opshttp.Config{Access: access}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("operators-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	over := []string{"ESCAPEMENT_API=" + server.URL, "ESCAPEMENT_API_TOKEN_FILE=" + file}
	lease := cmdtest.HoldLock(t, p.Server, "line", locking.Options{TTL: 3 * lockstore.Margin})
	_, out, _ := cmdtest.Call(p.Env, "", "jobs", "run", "yearly")
	run := strings.TrimSpace(out)
	for _, args := range [][]string{
		{"jobs", "list"}, {"jobs", "list", "--limit", "1"}, {"jobs", "get", "yearly", "-o", "json"}, {"jobs", "get", "nope"}, {"jobs", "list", "-o", "json"},
		{"runs", "list", "-o", "json"}, {"runs", "list", "--outcome", "failed"}, {"runs", "get", "nope"},
		{"nodes", "list", "-o", "json"}, {"nodes", "drain", "nope"}, {"generations", "list"}, {"generations", "promote", "green"},
		{"locks", "get", "nope"}, {"locks", "release", "line", "--token", "1"}, {"ledger", "verify", "--job", "yearly"}, {"ledger", "verify", "--job", "nope"},
		{"jobs", "pause", "nope", "--reason", "x"}, {"jobs", "remove", "nope"}, {"jobs", "rewind", "nope", "--to", "2h"},
		{"jobs", "backfill", "nope", "--from", "2h", "--to", "1h"}, {"jobs", "backfill", "yearly", "--from", "1970-01-02", "--to", "2020-01-01", "--dry-run"}, {"jobs", "backfills"},
		{"jobs", "backfills", "nope"}, {"jobs", "backfill-cancel", "yearly"}, {"runs", "cancel", "nope"}, {"audit", "list"},
	} {
		code, out, words := cmdtest.Call(p.Env, "", args...)
		apiCode, apiOut, apiWords := cmdtest.Call(over, "", args...)
		if code != apiCode || out != apiOut || words != apiWords {
			t.Errorf("%q\nRedis: exit %d\n%s%s\nAPI: exit %d\n%s%s", args, code, out, words, apiCode, apiOut, apiWords)
		}
	}
	do := func(env []string, want int, args ...string) {
		t.Helper()
		if code, out, words := cmdtest.Call(env, "", args...); code != want {
			t.Errorf("%q: exit %d, want %d\n%s%s", args, code, want, out, words)
		}
	}
	do(over, command.ExitDone, "jobs", "pause", "yearly", "--reason", "stock-taking", "--until", "2d")
	do(over, command.ExitDone, "jobs", "resume", "yearly", "--reason", "stock is taken")
	do(p.Env, command.ExitDone, "jobs", "run", "yearly", "--reason", "by hand")
	do(over, command.ExitDone, "runs", "cancel", run)
	do(over, command.ExitDone, "locks", "release", "line", "--token", strconv.FormatInt(lease.Token(), 10), "--force", "--reason", "stuck")
	do(append(over[:1:1], "ESCAPEMENT_API_TOKEN=viewers-token"), command.ExitRefused, "jobs", "resume", "yearly")
	do(append(over[:1:1], "ESCAPEMENT_API_TOKEN=nobodys-token"), command.ExitRefused, "jobs", "list")
	do([]string{"ESCAPEMENT_API=http://127.0.0.1:1"}, command.ExitUnreachable, "jobs", "list")
	do([]string{"ESCAPEMENT_API=redis://127.0.0.1:1"}, command.ExitUsage, "jobs", "list")
	do(over, command.ExitUsage, "backup", "-", "--api", server.URL)
	with := "http://u:hunter2@" + strings.TrimPrefix(server.URL, "http://")
	for _, env := range [][]string{over, {"ESCAPEMENT_API_TOKEN=nobodys-token"}, nil} {
		code, _, words := cmdtest.Call(env, "", "jobs", "list", "--namespace", "other", "--api", with)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("--api with a password: exit %d, %s", code, words)
		}
	}
	list, err := in.Audit(t.Context(), ops.ActionFilter{Who: "ann"})
	if err != nil || len(list.Items) == 0 || list.Items[0].Action != "locks release" || list.Items[0].Via != "cli" || list.Items[0].Reason != "stuck" {
		t.Errorf("%v %v", list.Items, err)
	}
	all, err := in.Audit(t.Context(), ops.ActionFilter{})
	for action, why := range map[string]string{"jobs resume": "stock is taken", "jobs run": "by hand"} {
		if err != nil || !slices.ContainsFunc(all.Items, func(a ops.ActionView) bool { return a.Action == action && a.Reason == why }) {
			t.Errorf("%s has not the reason %q: %v %v", action, why, all.Items, err)
		}
	}
}
