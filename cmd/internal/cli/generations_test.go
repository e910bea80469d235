package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// secondly are jobs each second; what differs is for two generations.
func secondly(names []string, more string) string {
	text := "jobs:\n"
	for _, name := range names {
		text += "  - {name: " + name + ", schedule: \"@every 1s\", ttl: 5s, exec: {command: [\"true\"]}}\n"
	}
	return text + more
}

// nodeOf starts a node by a name of its own.
func nodeOf(t *testing.T, env []string, name, jobs string) *cmdtest.Running {
	t.Helper()
	p := cmdtest.Start(t, append(slices.Clone(env), "ESCAPEMENT_NODE_NAME="+name), "run", "--config", testkit.Write(t, jobs))
	p.Logged("node started")
	return p
}

// TestTwoGenerations runs two deployed clusters on one Redis, promotes the second, and the first
// again.
func TestTwoGenerations(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	names := []string{"a", "b", "c"}
	before := nodeOf(t, env, "old-1", secondly(names, "  - {name: gone, schedule: \"0 3 * * *\", exec: {command: [\"true\"]}}\n  - {name: moved, schedule: \"0 3 * * *\", exec: {command: [\"true\"]}}\n"))
	neo := append(slices.Clone(env), "ESCAPEMENT_NODE_GENERATION=neo")
	after := nodeOf(t, neo, "neo-1", secondly(names, "  - {name: fresh, schedule: \"0 4 * * *\", exec: {command: [\"true\"]}}\n  - {name: moved, schedule: \"0 */6 * * *\", timeout: 1m, exec: {command: [\"true\"]}}\n"))
	after.Logged("on standby: another generation is active")

	cmdtest.Eventually(t, "both generations are known", func() bool {
		all := cmdtest.Decode[[]ops.GenerationView](t, env, "generations", "list")
		return len(all) == 2 && all[1].Unsettled.Count == 0 && all[1].Jobs == 5
	})
	all := cmdtest.Decode[[]ops.GenerationView](t, env, "generations", "list")
	if all[0].Name != "" || all[0].State != "active" || all[0].Running != 5 || all[1].Name != "neo" || all[1].State != "standby" || all[1].Running != 0 {
		t.Errorf("got %+v", all)
	}
	code, stdout, stderr := cmdtest.Call(env, "", "generations", "list")
	for _, want := range []string{"GENERATION  STATE    NODES  JOBS  JOBS RUN\n-           active   1      5     5\nneo         standby  1      5     0\n",
		"\nneo       moved  schedule  0 3 * * *, 1 tick a day  0 */6 * * *, 4 ticks a day\n", "\nneo       moved  settings  -                        timeout",
		"\nneo       fresh  added", "\nneo       gone   nobody runs it"} {
		if code != command.ExitDone || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s, want %q in\n%s", code, stderr, want, stdout)
		}
	}
	if code, stdout, _ := cmdtest.Call(env, "", "nodes", "list"); code != command.ExitDone || !strings.Contains(stdout, "\nneo-1  standby  neo ") || !strings.Contains(stdout, "\nold-1  active   - ") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	if code, stdout, _ := cmdtest.Call(env, "", "jobs", "get", "a"); code != command.ExitDone || !strings.Contains(stdout, "\nstandby       neo-1\n") {
		t.Errorf("exit %d\n%s", code, stdout)
	}

	code, stdout, stderr = cmdtest.Call(env, "", "generations", "promote", "noe")
	if code != command.ExitRefused || stdout != "" || !strings.Contains(stderr, `there is no such generation; there are`) || !strings.Contains(stderr, "neo") {
		t.Errorf("an unknown generation: exit %d, %q, %q", code, stdout, stderr)
	}
	for pattern, want := range map[string]int{"zzz*": command.ExitRefused, "[": command.ExitUsage, "gone": command.ExitRefused} {
		code, stdout, stderr := cmdtest.Call(env, "", "generations", "promote", "neo", "--job", pattern)
		if code != want || stdout != "" || !strings.Contains(stderr, pattern) {
			t.Errorf("--job %s: exit %d, %q, %q", pattern, code, stdout, stderr)
		}
	}
	p := cmdtest.Decode[ops.Promotion](t, env, "generations", "promote", "neo", "--author", "anna")
	if p.Generation != "neo" || p.Epoch != 1 || p.Switched.Count != 4 || p.Created.Count != 1 || p.Orphaned.Count != 1 {
		t.Errorf("got %+v", p)
	}
	after.Logged("run ended", `"job":"a"`)
	before.Logged("on standby: another generation is active")
	if code, stdout, stderr := cmdtest.Call(env, "", "generations", "promote", "neo"); code != command.ExitDone || !strings.Contains(stderr, "generation neo is active already; nothing is changed") {
		t.Errorf("twice: exit %d, %q, %q", code, stdout, stderr)
	}

	code, stdout, stderr = cmdtest.Call(env, "", "generations", "promote", "-", "--job", "b")
	if code != command.ExitDone || !strings.Contains(stdout, "switched    1: b\n") || !strings.Contains(stderr, "generation - runs the jobs b, by promotion 2; which one is active has not changed; the way back: `generations promote neo --job 'b'`") {
		t.Errorf("by pattern: exit %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ := cmdtest.Call(env, "", "nodes", "list"); code != command.ExitDone || !strings.Contains(stdout, "1 job on standby") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	before.Signal(syscall.SIGTERM)
	before.Exits(command.ExitDone)
	if code, _, stderr := cmdtest.Call(env, "", "generations", "promote", ""); code != command.ExitRefused || !strings.Contains(stderr, "no node of it is alive") {
		t.Errorf("a generation of which nothing lives: exit %d, %q", code, stderr)
	}
	if code, _, stderr := cmdtest.Call(env, "", "generations", "promote", "neo"); code != command.ExitDone || !strings.Contains(stderr, "generation neo is active, by promotion 3") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	after.Signal(syscall.SIGTERM)
	after.Exits(command.ExitDone)
	once(t, env)
}

// once expects each tick to have run at most once, and the books to close.
func once(t *testing.T, env []string) {
	t.Helper()
	ran := map[string]string{}
	for _, r := range cmdtest.Decode[[]runJSON](t, env, "runs", "list") {
		key := r.Job + " " + r.Tick.String()
		if by, twice := ran[key]; twice && r.Outcome == jobs.OutcomeSucceeded && r.Trigger == "schedule" {
			t.Errorf("%s ran on %s and on %s", key, by, r.Node)
		}
		ran[key] = r.Node
	}
	if code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}
