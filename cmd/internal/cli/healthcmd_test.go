package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	gone := closedPort(t)
	_, port, _ := strings.Cut(listen, ":")
	for _, tt := range []struct {
		env            []string
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"ESCAPEMENT_HTTP_LISTEN=" + listen}, nil, exitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=:" + port}, nil, exitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=0.0.0.0:" + port}, []string{"--ready"}, exitFailed, "", "escapement: a: draining\na: clock\n"},
		{nil, []string{"--api", srv.URL + "/api/v1/"}, exitDone, "ok\n", ""},
		{[]string{"ESCAPEMENT_API=" + srv.URL}, []string{"--ready"}, exitFailed, "", "a: draining"},
		{nil, []string{"--api", moved.URL}, exitFailed, "", ""},
		{nil, []string{"--api", "http://" + closedPort(t)}, exitFailed, "", "refused; start the node, or correct the address\n"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=" + gone}, nil, exitFailed, "", "escapement: ESCAPEMENT_HTTP_LISTEN: no node answers at http://" + gone + "/healthz: "},
		{nil, []string{"--api", "10.0.0.7:8080"}, exitUsage, "", "is no address of a node"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}, nil, exitUsage, "", "--api URL"},
		{[]string{"ESCAPEMENT_HTTP_LISTEN="}, nil, exitUsage, "", "--api URL"},
		{[]string{"ESCAPEMENT_HTTP_LISTENS=x"}, nil, exitConfig, "", "ESCAPEMENT_HTTP_LISTENS"},
	} {
		code, stdout, stderr := call(tt.env, "", append([]string{"health", "--config", ""}, tt.args...)...)
		if code != tt.code || stdout != tt.stdout || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%v %v: exit %d, %q, %q", tt.env, tt.args, code, stdout, stderr)
		}
	}
	code, stdout, _ := call(nil, "", "health", "--ready", "--config", "", "--api", srv.URL, "-o", "json")
	var got health
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFailed || got.OK || len(got.Reasons) != 2 || got.URL != srv.URL+"/readyz" {
		t.Errorf("exit %d, %+v, %v", code, got, err)
	}
}
