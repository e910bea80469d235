package tool

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
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
