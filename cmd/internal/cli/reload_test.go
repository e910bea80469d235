package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// TestReloadUnderLoad changes the jobs of two running nodes: by a signal on one, by the swap of a
// link on the other, then by a file of jobs.d. No tick of a job that stays is lost or runs twice,
// refused files change nothing, and settings outside the jobs are named.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	job := func(name, more string) string {
		return "  - {name: " + name + ", schedule: \"@every 1s\", catch_up: all, http: {url: \"" + hook.URL + "/" + name + "\"}" + more + "}\n"
	}
	first := "jobs:\n" + job("steady", "") + job("longer", ", ttl: 10s") + job("elsewhere", "") + job("gone", "")
	second := "node: {weight: 2}\njobs:\n" + job("steady", "") + job("longer", ", ttl: 12s") + job("elsewhere", ", timeout: 20s") + job("came", "")
	second = strings.Replace(second, "/elsewhere", "/other", 1)
	env := func(name string) []string {
		return []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_NODE_NAME=" + name, "ESCAPEMENT_NODE_REVISION=1"}
	}
	plain := testkit.Write(t, first)
	linked := testkit.NewVolume(t, first)
	a, b := cmdtest.Start(t, env("a"), "run", "--config", plain), cmdtest.Start(t, env("b"), "run", "--config", linked.File())
	a.Logged("node started")
	b.Logged("node started")
	eitherLogged(a, b, "run ended", `"job":"longer"`)

	testkit.Put(t, plain, second)
	a.Signal(syscall.SIGHUP)
	a.Logged("configuration reloaded", `"added":1`, `"changed":2`, `"removed":1`)
	a.Logged("job changed", `"job":"longer"`, `"settings":"ttl 10s -> 12s"`)
	a.Logged("job changed", `"job":"elsewhere"`, `timeout 0s -> 20s`, `http.url changed`)
	a.Logged("settings have changed", `"settings":"node.weight"`)
	linked.Swap(second)
	b.Logged("configuration reloaded", `"added":1`, `"changed":2`, `"removed":1`)

	more := filepath.Join(config.JobsDir, "more.yaml")
	for _, dir := range []string{filepath.Dir(plain), linked.Dir} {
		testkit.Put(t, filepath.Join(dir, more), "jobs:\n"+job("late", ""))
	}
	for _, p := range []*cmdtest.Running{a, b} {
		p.Logged("job added", `"job":"late"`)
	}
	testkit.Put(t, filepath.Join(filepath.Dir(plain), more), "jobs:\n"+job("late", "")+job("steady", ""))
	a.Logged("configuration refused", more, `"line":3`, `"setting":"jobs[5].name"`, plain+":3 already")
	eitherLogged(a, b, "run ended", `"job":"late"`)
	for _, p := range []*cmdtest.Running{a, b} {
		p.Signal(syscall.SIGTERM)
	}
	for _, p := range []*cmdtest.Running{a, b} {
		p.Exits(command.ExitDone)
	}
	for _, name := range []string{"steady", "longer", "elsewhere"} {
		consecutive(t, cmdtest.Decode[[]runJSON](t, env("x"), "runs", "list", "--job", name))
	}
	if code, stdout, stderr := cmdtest.Call(env("x"), "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
	if n := strings.Count(a.Stderr.Text(), "settings have changed"); n != 1 {
		t.Errorf("the settings that need a restart are named %d times", n)
	}
}

// eitherLogged returns when one of two processes has logged a line with this message and these
// words.
func eitherLogged(a, b *cmdtest.Running, message string, words ...string) {
	a.T.Helper()
	late := time.After(cmdtest.Within)
	for {
		linesA, _, moreA := a.Stderr.Seen()
		linesB, _, moreB := b.Stderr.Seen()
		if a.Find(linesA, message, words...) != "" || b.Find(linesB, message, words...) != "" {
			return
		}
		select {
		case <-moreA:
		case <-moreB:
		case <-late:
			a.T.Fatalf("log %s: not within %s", message, cmdtest.Within)
		}
	}
}

// consecutive expects a run that succeeded for each second between the first and the last.
func consecutive(t *testing.T, runs []runJSON) {
	t.Helper()
	slices.SortFunc(runs, func(a, b runJSON) int { return a.Tick.Compare(b.Tick) })
	runs = slices.DeleteFunc(runs, func(r runJSON) bool { return r.Outcome == jobs.OutcomeSuperseded }) // marks of new definitions; a tick would leave a gap
	if last := len(runs) - 1; last > 0 && runs[last].Outcome == jobs.OutcomeRunning && runs[last].Node == "" {
		runs = runs[:last] // granted ahead and handed back, as the nodes stopped
	}
	if len(runs) < 4 {
		t.Errorf("only %d runs", len(runs))
	}
	for i, r := range runs {
		if r.Outcome != jobs.OutcomeSucceeded || i > 0 && r.Tick.Sub(runs[i-1].Tick) != time.Second {
			t.Errorf("%s at %s: %s on %s, before it %s", r.Job, r.Tick, r.Outcome, r.Node, runs[max(0, i-1)].Tick)
		}
	}
}

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
