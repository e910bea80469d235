package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
)

// TestHealthCommand checks a node that lives and is not ready, a missing node, and bad addresses.
func TestHealthCommand(t *testing.T) {
	t.Parallel()
	n := &fakeNode{name: "a", err: errors.Join(errors.New("draining"), errors.New("clock"))}
	srv := httptest.NewServer(healthHandler([]*fakeNode{n}))
	t.Cleanup(srv.Close)
	moved := httptest.NewServer(http.RedirectHandler(srv.URL+"/healthz", http.StatusFound))
	t.Cleanup(moved.Close)
	listen := strings.TrimPrefix(srv.URL, "http://")
	gone := cmdtest.ClosedPort(t)
	_, port, _ := strings.Cut(listen, ":")
	for _, tt := range []struct {
		env            []string
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"ESCAPEMENT_HTTP_LISTEN=" + listen}, nil, command.ExitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=:" + port}, nil, command.ExitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=0.0.0.0:" + port}, []string{"--ready"}, command.ExitFailed, "", "escapement: a: draining\na: clock\n"},
		{nil, []string{"--api", srv.URL + "/api/v1/"}, command.ExitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_API=" + srv.URL}, []string{"--ready"}, command.ExitFailed, "", "a: draining"},
		{nil, []string{"--api", moved.URL}, command.ExitFailed, "", ""},
		{nil, []string{"--api", "http://" + cmdtest.ClosedPort(t)}, command.ExitFailed, "", "refused; start the node, or correct the address\n"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=" + gone}, nil, command.ExitFailed, "", "escapement: ESCAPEMENT_HTTP_LISTEN: no node answers at http://" + gone + "/healthz: "},
		{nil, []string{"--api", "10.0.0.7:8080"}, command.ExitUsage, "", "is no address of a node"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}, nil, command.ExitUsage, "", "--api URL"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN="}, nil, command.ExitUsage, "", "--api URL"},
		{[]string{"ESCAPEMENT_HTTP_LISTENS=x"}, nil, command.ExitConfig, "", "ESCAPEMENT_HTTP_LISTENS"},
	} {
		code, stdout, stderr := cmdtest.Call(tt.env, "", append([]string{"health", "--config", ""}, tt.args...)...)
		if code != tt.code || stdout != tt.stdout || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%v %v: exit %d, %q, %q", tt.env, tt.args, code, stdout, stderr)
		}
	}
	code, stdout, _ := cmdtest.Call(nil, "", "health", "--ready", "--config", "", "--api", srv.URL, "-o", "json")
	var got health
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != command.ExitFailed || got.OK || len(got.Reasons) != 2 || got.URL != srv.URL+"/readyz" {
		t.Errorf("exit %d, %+v, %v", code, got, err)
	}
}
