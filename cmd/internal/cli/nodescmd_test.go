package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// theNode is how nodes list has the only node.
func theNode(t *testing.T, env []string) ops.NodeView {
	t.Helper()
	views := decode[[]ops.NodeView](t, env, "nodes", "list")
	if len(views) != 1 {
		t.Fatalf("got %+v, want one node", views)
	}
	return views[0]
}

// Runs a tool and wants its exit code and words.
func says(t *testing.T, env []string, code int, words string, args ...string) {
	t.Helper()
	got, stdout, stderr := call(env, "", args...)
	if got != code || !strings.Contains(stdout+stderr, words) {
		t.Errorf("%v: exit %d, want %d\n%s%swant %q", args, got, code, stdout, stderr, words)
	}
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
	says(t, env, exitNotFound, "did you mean a1", "nodes", "drain", "a2")
	says(t, env, exitNotFound, "did you mean a1", "nodes", "resume", "a2")
	says(t, env, exitDone, "node a1 was not drained", "nodes", "resume", "a1")
	id := tell(t, env, exitDone, "jobs", "run", "patient")
	eventually(t, "the command begins", func() bool { return len(lines(t, filepath.Join(dir, "begun"))) == 1 })

	// Waits, each in a tool of its own: the first is let down, the second is not.
	wait := func(words *heard) chan int {
		code := make(chan int, 1)
		go func() {
			code <- new(app).Run([]string{"nodes", "drain", "a1", "--reason", "new disk", "--wait"}, strings.NewReader(""), words, words, env)
		}()
		eventually(t, "the node drains", func() bool { return theNode(t, env).State == "draining" })
		return code
	}
	var words heard
	first := wait(&words)
	says(t, env, exitDone, "node a1 is resumed; it claims again within a second\n", "nodes", "resume", "a1")
	if code := <-first; code != exitFailed || !strings.Contains(words.String(), "somebody resumed it") {
		t.Errorf("exit %d, %s", code, words.String())
	}
	eventually(t, "the node works again", func() bool { return theNode(t, env).State == "active" })
	second := wait(&words)
	eventually(t, "it owns nothing", func() bool { return theNode(t, env).Owned == 0 })
	select {
	case code := <-second:
		t.Errorf("exit %d while a run goes on: %s", code, words.String())
	default:
	}
	if r := decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeRunning {
		t.Errorf("got %+v", r)
	}
	url := p.field("node starting", "http")
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "a1: draining: drained by ann: new disk") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-second; code != exitDone || !strings.Contains(words.String(), "nothing runs there") || strings.Count(words.String(), "waiting for 1 run on a1\n") < 1 {
		t.Errorf("exit %d, %s", code, words.String())
	}
	if r := decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeSucceeded {
		t.Errorf("got %+v", r)
	}
	rested := len(lines(t, filepath.Join(dir, "often")))
	says(t, env, exitDone, "drained by ann: new disk", "nodes", "list")
	if n := theNode(t, env); n.Drain == nil || n.Drain.Author != "ann" || n.Drain.Reason != "new disk" || n.Running != 0 {
		t.Errorf("got %+v", n)
	}

	if views := decode[[]ops.NodeView](t, env, "nodes", "resume", "a1"); len(views) != 1 || views[0].Drain != nil {
		t.Errorf("got %+v", views)
	}
	p.logged("resumed: the node claims again")
	eventually(t, "it runs again", func() bool { return len(lines(t, filepath.Join(dir, "often"))) > rested })

	says(t, env, exitDone, "it hands over what it owns", "nodes", "drain", "a1")
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	says(t, env, exitDone, "escapement: drained, and not there: a1\n", "nodes", "list")
	says(t, env, exitDone, "node a1 is resumed; it is not there at present", "nodes", "resume", "a1")
	says(t, env, exitNotFound, `"a1"`, "nodes", "resume", "a1")
	says(t, env, exitNotFound, `"a1"`, "nodes", "drain", "a1")
	if code, stdout, stderr := call(env, "", "ledger", "verify"); code != exitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}
