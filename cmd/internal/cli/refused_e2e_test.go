package cli

import (
	"encoding/json"

	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

// TestRefusedReloadIsShown: doctor and nodes list show where a node's changed files were refused,
// and since when, until the files are read again. The files' secrets are not in the node's log
// either.
func TestRefusedReloadIsShown(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	config := testkit.Write(t, testkit.JobsOf("first"))
	node := cmdtest.Start(t, append([]string{"ESCAPEMENT_NODE_NAME=a"}, env...), "run", "--config", config)
	node.Logged("node started")
	type finding struct{ Code, Severity, On, Text string }
	refused := func() (f finding) {
		_, out, _ := cmdtest.Call(env, "", "doctor", "-o", "json")
		var all []finding
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err, out)
		}
		for _, is := range all {
			if is.Code == "config_refused" {
				f = is
			}
		}
		return f
	}
	if f := refused(); f.Code != "" {
		t.Errorf("before: %+v", f)
	}
	since := ""
	for _, tt := range []struct{ text, where string }{
		{"jobs:\n  - {name: first, schedule: '@hourly', timeout: 'redis://u:hunter2@host', exec: {command: [x]}}\n  - {name: b, exec: {env: {PASSWORD: [hunter2]}}}\n",
			":2: jobs[first].timeout (and 3 more)"},
		{"http:\n  operator_token hunter2\n", ":2: http"},
		{"http: {operator_token hunter2}\n", ":1: http"},
		{"http: {operator_token hunter2: x, operator_token=hunter2: y}\n", ":1: http (and 1 more)"},
		{"operator_token hunter2\n", ":1"},
		{"redis: {sentinel_password:hunter2}\n", ":1: redis"},
		{"jobs: hunter2\n", ":1: jobs"},
		{"notify: {targets: [{name: stranger, webhook: hunter2}]}\n", ":1: notify.targets[...].webhook"},
		{"jobs:\n  - {name: first, schedule: '@hourly', exec: {command: [x], env: {PASSWORD hunter2}}}\n", ":2: jobs[first].exec.env"},
		{"jobs:\n  - {name: first, schedule: '@hourly', exec: {command: [x], env: {PASSWORD=hunter2: x, PASSWORD=hunter2: y}}}\n", ":2: jobs[first].exec.env (and 1 more)"},
		{"jobs:\n  - {name: first, schedule: '@hourly', http: {url: 'http://x', headers: {Authorization hunter2}}}\n", ":2: jobs[first].http.headers (and 1 more)"},
		{"jobs:\n  - {name: first, schedule: '@hourly', http: {url: 'http://x', headers: Authorization hunter2}}\n", ":2: jobs[first].http.headers"},
	} {
		testkit.Put(t, config, tt.text)
		node.Signal(syscall.SIGHUP)
		want := "goes on with the jobs that it had: " + config + tt.where
		cmdtest.Eventually(t, "doctor tells "+tt.where, func() bool { return strings.HasSuffix(refused().Text, want) })
		if f := refused(); f.Severity != "warning" || f.On != "a" {
			t.Errorf("%+v", f)
		}
		code, list, stderr := cmdtest.Call(env, "", "nodes", "list", "-o", "wide")
		_, note, _ := strings.Cut(list, "configuration refused since ")
		at, where, _ := strings.Cut(strings.TrimSpace(note), ": ")
		if since == "" {
			since = at
		}
		if code != command.ExitDone || where != config+tt.where || at != since || len(at) < 20 {
			t.Errorf("nodes list: %s%s; want since %s", list, stderr, since)
		}
		if _, all, _ := cmdtest.Call(env, "", "nodes", "list", "-o", "json"); strings.Contains(all, "hunter2") || !strings.Contains(all, `"config_refused": {`) {
			t.Error(all)
		}
	}
	if said := node.Stdout.Text() + node.Stderr.Text(); strings.Contains(said, "hunter2") {
		t.Errorf("the log: %s", said)
	}
	testkit.Put(t, config, testkit.JobsOf("first"))
	node.Signal(syscall.SIGHUP)
	cmdtest.Eventually(t, "it is over", func() bool { return refused().Code == "" })
	node.Signal(syscall.SIGTERM)
	node.Exits(command.ExitDone)
}
