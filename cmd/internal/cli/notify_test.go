package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path = r.URL.Path + " " + r.Header.Get("X-Key") }))
	defer server.Close()
	secret := testkit.Write(t, "hunter2\n")
	file := testkit.Write(t, `
notify:
  targets:
    - {name: team, webhook: {url: "`+server.URL+`/{{ secret }}", headers: {X-Key: "k-{{secret}}"}, secret_file: "`+secret+`"}}
    - {name: refuses, command: [sh, -c, "echo not today; exit 1"]}
`)
	if code, out, words := cmdtest.Call(nil, "", "notify", "test", "team", "--config", file, "-o", "json"); code != command.ExitDone || !strings.Contains(out, `"sent": true`) {
		t.Errorf("exit %d\n%s%s", code, out, words)
	}
	if path != "/hunter2 k-hunter2" {
		t.Errorf("called %s", path)
	}
	code, out, words := cmdtest.Call(nil, "", "notify", "test", "--config", file)
	if code != command.ExitFailed || !strings.Contains(out, "exit status 1: not today") || !strings.Contains(words, "not taken by refuses") {
		t.Errorf("exit %d\n%s%s", code, out, words)
	}
	code, _, words = cmdtest.Call(nil, "", "notify", "test", "tem", "--config", file)
	if code != command.ExitNotFound || !strings.Contains(words, "did you mean team; it has: team, refuses") {
		t.Errorf("exit %d\n%s", code, words)
	}
	code, _, words = cmdtest.Call(nil, "", "notify", "test", "--config", testkit.Write(t, "namespace: a\n"))
	if code != command.ExitNotFound || !strings.Contains(words, "has no targets: add some under notify.targets") {
		t.Errorf("exit %d\n%s", code, words)
	}
}

// TestNotifierKilled: a node is killed while it notifies of a failed job. Another node sends the
// message, under the same key.
func TestNotifierKilled(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var calls atomic.Int32
	keys, hang := make(chan string, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		if calls.Add(1) == 1 {
			<-hang
		}
	}))
	defer server.Close()
	defer close(hang)
	file := `
notify: {every: 1s, group_for: 0s, targets: [{name: team, webhook: {url: "` + server.URL + `"}}]}
jobs:
  - name: fails
    schedule: "* * * * * *"
    exec: {command: ["false"]}
`
	first, _ := startNode(t, redis, file)
	key := <-keys
	first.Signal(syscall.SIGKILL)
	second, _ := startNode(t, redis, file)
	if again := <-keys; again != key {
		t.Errorf("told under %s, and then under %s", key, again)
	}
	second.Signal(syscall.SIGTERM)
	second.Exits(command.ExitDone)
	client := redis.Client(t)
	if text, err := client.HGet(t.Context(), "{escapement}:notified", ":to team").Result(); err != nil || strings.Contains(text, `"send"`) {
		t.Errorf("%v: %s", err, text)
	}
	if left := len(keys); left != 0 {
		t.Errorf("told %d times more", left)
	}
}
