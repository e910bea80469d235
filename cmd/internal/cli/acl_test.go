package cli

import (
	"fmt"

	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// leastACL is the user of Redis that docs/operations.md recommends, as ACL SETUSER takes it: once
// for a shell, and once as a line of an ACL file.
func leastACL(t *testing.T) []any {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	after := func(begins string) string {
		_, line, found := strings.Cut(string(text), "\n"+begins)
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Fatalf("docs/operations.md has no line %s", begins)
		}
		return line
	}
	words := shellWords(after("redis-cli ACL SETUSER escapement "))
	if inFile := strings.Fields(after("user escapement ")); !slices.Equal(words, inFile) {
		t.Errorf("docs/operations.md has two users:\n%v\n%v", words, inFile)
	}
	args := []any{"acl", "setuser", "escapement", "reset"}
	for _, word := range words {
		args = append(args, word)
	}
	return args
}

// TestLeastACL runs nodes, commands, locks and a move with the least rights of the operators'
// guide. Redis refuses nothing.
func TestLeastACL(t *testing.T) {
	t.Parallel()
	from, to := redistest.Start(t), redistest.Start(t)
	url := func(s *redistest.Server) string { return "redis://escapement:PASSWORD@" + s.Addr() }
	for _, s := range []*redistest.Server{from, to} {
		if err := s.Client(t).Do(t.Context(), leastACL(t)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"ESCAPEMENT_REDIS_URL=" + url(from), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_REDIS_NEXT=" + url(to)}
	config := `{name: often, schedule: "@every 500ms", exec: {command: [sh, -c, "echo hello"]}}
  - {name: follows, after: often, on_crash: rerun, retry: {max: 1, backoff: 10ms}, exec: {command: [sh, -c, "exit 1"]}}
  - {name: parts, schedule: "@every 1s", overlap: queue, shards: 2, exec: {command: [sleep, "0.1"]}}`
	a, b := nodeOf(t, env, "a", "jobs:\n  - "+config), nodeOf(t, env, "b", "jobs:\n  - "+config)
	for job, outcome := range map[string]string{"follows": "failed", "parts": "succeeded"} { // on whichever node
		cmdtest.Eventually(t, job+" runs", func() bool {
			return len(cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--job", job, "--outcome", outcome)) > 0
		})
	}
	backup := t.TempDir() + "/jobs.jsonl"
	run := cmdtest.Decode[runJSON](t, env, "jobs", "run", "parts", "--unique", "k", "--payload", "{}", "--wait", "-o", "json")
	for _, line := range []string{
		"jobs list", "jobs get often", "jobs run often --at 1h", "jobs pause often --reason x", "jobs resume often", "jobs rewind often --to 1s",
		"jobs backfill parts --from 30s --to 10s", "jobs backfills parts", "jobs backfill-cancel parts",
		"runs list", "runs get " + run.Run, "runs rerun " + run.Run, "nodes list", "nodes drain b --wait", "nodes resume b", "locks list",
		"lock a -- true", "audit list", "generations list", "ledger verify", "doctor", "backup " + backup, "move plan --to " + url(to), "move seal --to " + url(to),
		"move copy --to " + url(to), "move open --to " + url(to), "move status --to " + url(to),
	} {
		if code, stdout, stderr := cmdtest.Call(env, "", strings.Fields(line)...); code != command.ExitDone && (code != command.ExitRefused || !strings.HasPrefix(line, "jobs rewind")) { // which a run in flight refuses
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
	a.Logged("the namespace has moved")
	waits := make(chan int, 1)
	held := cmdtest.Start(t, nil, "lock", "line", "--redis", url(to), "--", "sh", "-c", "echo in; read -r _ || sleep 1000")
	held.Await(held.Stdout, "the command begins", func(lines []string) bool { return len(lines) > 0 })
	go func() {
		code, _, _ := cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "", "lock", "line", "--wait", "30s", "--", "true")
		waits <- code
	}()
	cmdtest.Eventually(t, "it waits in line", func() bool {
		return cmdtest.Decode[ops.LockView](t, []string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "locks", "get", "line").Waiters == 1
	})
	cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "", "locks", "release", "line", "--token", fmt.Sprint(cmdtest.Decode[ops.LockView](t, []string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "locks", "get", "line").Token))
	held.Exits(75) // the lock was lost
	if code := <-waits; code != command.ExitDone {
		t.Errorf("whoever waited for the lock: exit %d", code)
	}
	for _, node := range []*cmdtest.Running{a, b} {
		node.Signal(syscall.SIGTERM)
		node.Exits(command.ExitDone)
	}
	if code, _, stderr := cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "", "jobs", "remove", "follows"); code != command.ExitDone {
		t.Errorf("jobs remove: exit %d, %s", code, stderr)
	}
	if code, _, stderr := cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=" + url(to)}, "", "restore", backup, "--job", "follows"); code != command.ExitDone {
		t.Errorf("restore: exit %d, %s", code, stderr)
	}
	for _, s := range []*redistest.Server{from, to} {
		refused, err := s.Client(t).Do(t.Context(), "acl", "log").Slice()
		if err != nil || len(refused) > 0 {
			t.Errorf("Redis has refused: %v, %v", refused, err)
		}
	}
}
