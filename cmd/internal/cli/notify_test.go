package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
)

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
