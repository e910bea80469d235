//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
)

const resultJobs = `
jobs:
  - {name: extract, schedule: "* * * * * *", max_runs: 1, exec: {command: [sh, -c, 'echo "{\"rows\": 3}" > "$ESCAPEMENT_RESULT_FILE"'], result: file}}
  - {name: load, after: extract, http: {url: %q, result: body}}
  - {name: tell, after: load, exec: {command: [sh, -c, 'echo "$ESCAPEMENT_PAYLOAD" > "$TO.new"; mv "$TO.new" "$TO"'], env: {TO: %q}}}
`

// TestResultsOfCommandsAndCalls: a command's file, or a call's body, is the follower's payload.
func TestResultsOfCommandsAndCalls(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"loaded": %s, "faults": %t}`, body, err != nil)
	}))
	defer server.Close()
	redis, to := redistest.Start(t), filepath.Join(t.TempDir(), "payload")
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	node := nodeOf(t, env, "a", fmt.Sprintf(resultJobs, server.URL, to))
	cmdtest.Eventually(t, "the last job has written its payload", func() bool {
		_, err := os.Stat(to)
		return err == nil
	})
	if text, err := os.ReadFile(to); err != nil || string(text) != `{"loaded":{"rows":3},"faults":false}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	node.Signal(syscall.SIGTERM)
	node.Exits(command.ExitDone)
}
