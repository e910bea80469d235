package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// theNode is how nodes list has the only node.
func theNode(t *testing.T, env []string) ops.NodeView {
	t.Helper()
	views := cmdtest.Decode[[]ops.NodeView](t, env, "nodes", "list")
	if len(views) != 1 {
		t.Fatalf("got %+v, want one node", views)
	}
	return views[0]
}

// TestNodesDrain drains a node that works, starts it anew, and resumes it.
func TestNodesDrain(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Start(t), t.TempDir()
	config := fmt.Sprintf(`
jobs:
  - name: often
    schedule: "@every 500ms"
    exec: {command: [sh, -c, 'echo $ESCAPEMENT_TICK >>%[1]s/often']}
  - name: patient
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo go >%[1]s/begun; while ! test -e %[1]s/enough; do sleep 0.1; done']}
`, dir)
	p, env := startNode(t, redis, config)
	env = append(env, "ESCAPEMENT_AUTHOR=ann")
	cmdtest.Expect(t, env, command.ExitNotFound, "did you mean a1", "nodes", "drain", "a2")
	cmdtest.Expect(t, env, command.ExitNotFound, "did you mean a1", "nodes", "resume", "a2")
	cmdtest.Expect(t, env, command.ExitDone, "node a1 was not drained", "nodes", "resume", "a1")
	id := cmdtest.Output(t, env, command.ExitDone, "jobs", "run", "patient")
	cmdtest.Eventually(t, "the command begins", func() bool { return len(cmdtest.Lines(t, filepath.Join(dir, "begun"))) == 1 })

	// Waits, each in a tool of its own: the first is let down, the second is not.
	wait := func(words *cmdtest.Buffer) chan int {
		code := make(chan int, 1)
		go func() {
			code <- cmdtest.NewApp().Run([]string{"nodes", "drain", "a1", "--reason", "new disk", "--wait"}, strings.NewReader(""), words, words, env)
		}()
		cmdtest.Eventually(t, "the node drains", func() bool { return theNode(t, env).State == "draining" })
		return code
	}
	var words cmdtest.Buffer
	first := wait(&words)
	cmdtest.Expect(t, env, command.ExitDone, "node a1 is resumed; it claims again within a second\n", "nodes", "resume", "a1")
	if code := <-first; code != command.ExitFailed || !strings.Contains(words.String(), "somebody resumed it") {
		t.Errorf("exit %d, %s", code, words.String())
	}
	cmdtest.Eventually(t, "the node works again", func() bool { return theNode(t, env).State == "active" })
	second := wait(&words)
	cmdtest.Eventually(t, "it owns nothing", func() bool { return theNode(t, env).Owned == 0 })
	select {
	case code := <-second:
		t.Errorf("exit %d while a run goes on: %s", code, words.String())
	default:
	}
	if r := cmdtest.Decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeRunning {
		t.Errorf("got %+v", r)
	}
	url := p.Field("node starting", "http")
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "a1: draining: drained by ann: new disk") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-second; code != command.ExitDone || !strings.Contains(words.String(), "nothing runs there") || strings.Count(words.String(), "waiting for 1 run on a1\n") < 1 {
		t.Errorf("exit %d, %s", code, words.String())
	}
	if r := cmdtest.Decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeSucceeded {
		t.Errorf("got %+v", r)
	}
	rested := len(cmdtest.Lines(t, filepath.Join(dir, "often")))
	cmdtest.Expect(t, env, command.ExitDone, "drained by ann: new disk", "nodes", "list")
	if n := theNode(t, env); n.Drain == nil || n.Drain.Author != "ann" || n.Drain.Reason != "new disk" || n.Running != 0 {
		t.Errorf("got %+v", n)
	}

	if views := cmdtest.Decode[[]ops.NodeView](t, env, "nodes", "resume", "a1"); len(views) != 1 || views[0].Drain != nil {
		t.Errorf("got %+v", views)
	}
	p.Logged("resumed: the node claims again")
	cmdtest.Eventually(t, "it runs again", func() bool { return len(cmdtest.Lines(t, filepath.Join(dir, "often"))) > rested })

	cmdtest.Expect(t, env, command.ExitDone, "it hands over what it owns", "nodes", "drain", "a1")
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
	cmdtest.Expect(t, env, command.ExitDone, "escapement: drained, and not there: a1\n", "nodes", "list")
	cmdtest.Expect(t, env, command.ExitDone, "node a1 is resumed; it is not there at present", "nodes", "resume", "a1")
	cmdtest.Expect(t, env, command.ExitNotFound, `"a1"`, "nodes", "resume", "a1")
	cmdtest.Expect(t, env, command.ExitNotFound, `"a1"`, "nodes", "drain", "a1")
	if code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}
