package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
)

// TestRunsLogs reads along a run that goes on, over Redis and over a node's API, and reads it again
// when it has ended.
func TestRunsLogs(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/go-on"
	p, env := startNode(t, redistest.Start(t), `jobs:
  - name: talks
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo one; until test -e `+file+`; do sleep 0.1; done; printf "two\nthree"']}
  - name: silent
    schedule: "@yearly"
    exec: {command: ["true"]}
`)
	node := []string{"ESCAPEMENT_API=" + p.Field("node starting", "http")}
	_, stdout, _ := cmdtest.Call(env, "", "jobs", "run", "talks")
	run := strings.TrimSpace(stdout)
	cmdtest.Eventually(t, "what the run has written so far", func() bool {
		code, stdout, _ := cmdtest.Call(env, "", "runs", "logs", run)
		return code == command.ExitDone && stdout == "one\n"
	})
	follows := make(chan string)
	for _, env := range [][]string{env, node} {
		first := &firstWrite{begun: make(chan struct{})}
		go func() {
			var words bytes.Buffer
			code := cmdtest.NewApp().Run([]string{"runs", "logs", run, "--follow"}, strings.NewReader(""), first, &words, env)
			follows <- strings.Join([]string{fmt.Sprint("exit ", code), first.String(), words.String()}, "|")
		}()
		<-first.begun
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := <-follows; got != "exit 0|one\ntwo\nthree\n|escapement: run "+run+" has ended: succeeded\n" {
			t.Errorf("got %q", got)
		}
	}
	for _, env := range [][]string{env, node} {
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "logs", run); code != command.ExitDone || stdout != "one\ntwo\nthree\n" {
			t.Errorf("exit %d, %q", code, stdout)
		}
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "logs", run, "-o", "json"); code != command.ExitDone || !strings.Contains(stdout, `"output": "one\ntwo\nthree"`) {
			t.Errorf("exit %d, %q", code, stdout)
		}
	}
	_, stdout, _ = cmdtest.Call(env, "", "jobs", "run", "silent", "--wait")
	if code, stdout, stderr := cmdtest.Call(env, "", "runs", "logs", strings.TrimSpace(stdout)); code != command.ExitDone || stdout != "" || !strings.Contains(stderr, "has written nothing\n") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, _ := cmdtest.Call(env, "", "runs", "logs", "nobody"); code != command.ExitNotFound {
		t.Errorf("exit %d", code)
	}
	if code, _, _ := cmdtest.Call(env, "", "runs", "logs", run, "-f", "-o", "json"); code != command.ExitUsage {
		t.Errorf("exit %d", code)
	}
}

// firstWrite is a stdout that signals the first write.
type firstWrite struct {
	cmdtest.Buffer
	begun chan struct{}
	once  sync.Once
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.once.Do(func() { close(w.begun) })
	return w.Buffer.Write(p)
}
