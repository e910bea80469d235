package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// TestTools looks at a running node through every tool.
func TestTools(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, sampleJobs)
	p.Logged("run ended", `"job":"often"`)

	t.Run("jobs list", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "jobs", "list", "-o", "json")
		testkit.Golden(t, "testdata/jobs.want", scrub(stdout))
		jobs := cmdtest.Decode[[]map[string]any](t, env, "jobs", "list")
		if len(jobs) != 3 || jobs[0]["name"] != "fails" || jobs[0]["owner"] != "a1" {
			t.Errorf("got %v", jobs)
		}
	})
	t.Run("jobs get", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "jobs", "get", "yearly", "-o", "json")
		testkit.Golden(t, "testdata/job.want", scrub(stdout))
		if code, stdout, _ := cmdtest.Call(env, "", "jobs", "get", "yearly"); code != command.ExitDone || !strings.Contains(stdout, "time zone     Europe/Berlin\n") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("jobs run", func(t *testing.T) {
		code, stdout, stderr := cmdtest.Call(env, `{"n":1}`, "jobs", "run", "yearly", "--payload", "-", "--wait", "-o", "json")
		if code != command.ExitDone {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		testkit.Golden(t, "testdata/run.want", scrub(stdout))

		code, stdout, stderr = cmdtest.Call(env, "", "jobs", "run", "fails", "--wait")
		id := strings.TrimSpace(stdout)
		if code != command.ExitRunFailed || strings.Contains(id, "\n") || !strings.Contains(stderr, "did not succeed: failed") {
			t.Errorf("exit %d, %q, %q", code, stdout, stderr)
		}
		if r := cmdtest.Decode[runJSON](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeFailed || r.Trigger != "manual" || !strings.Contains(r.Error, "this went wrong") {
			t.Errorf("got %+v", r)
		}
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "get", id); code != command.ExitDone || !strings.Contains(stdout, "\noutcome       failed\n") {
			t.Errorf("exit %d, %s", code, stdout)
		}

		code, stdout, _ = cmdtest.Call(env, "", "jobs", "run", "fails")
		if code != command.ExitDone || strings.Count(stdout, "\n") != 1 {
			t.Errorf("exit %d, %q: want the id on one line", code, stdout)
		}
	})
	t.Run("runs list", func(t *testing.T) {
		runs := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--job", "often")
		if len(runs) == 0 || slices.ContainsFunc(runs, func(r runJSON) bool { return r.Job != "often" || r.Trigger != "schedule" }) {
			t.Errorf("got %+v", runs)
		}
		if got := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--limit", "1"); len(got) != 1 {
			t.Errorf("--limit 1: %d", len(got))
		}
		if got := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--since", "2099-01-01T00:00:00Z"); got == nil || len(got) != 0 {
			t.Errorf("since a time to come: %v, want []", got)
		}
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "list", "-o", "wide", "--outcome", "failed"); code != command.ExitDone || !strings.Contains(stdout, "this went wrong") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("nodes list", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "nodes", "list", "-o", "json")
		testkit.Golden(t, "testdata/nodes.want", scrub(stdout))
		if code, stdout, _ := cmdtest.Call(env, "", "nodes", "list"); code != command.ExitDone || !strings.Contains(stdout, "\na1    active") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("ledger verify", func(t *testing.T) {
		if got := cmdtest.Decode[ops.Verification](t, env, "ledger", "verify"); len(got.Violations)+len(got.UnknownFormat)+len(got.Unverified) != 0 || got.Checked.Jobs != 3 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("not found", func(t *testing.T) {
		for _, args := range [][]string{
			{"jobs", "get", "nope"}, {"jobs", "run", "nope"}, {"runs", "list", "--job", "nope"}, {"runs", "get", "nope"},
			{"ledger", "verify", "--job", "nope"}, {"jobs", "list", "--namespace", "nope"}, {"nodes", "list", "--namespace", "nope"},
		} {
			code, stdout, stderr := cmdtest.Call(env, "", args...)
			if code != command.ExitNotFound || stdout != "" || !strings.Contains(stderr, "nope") {
				t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		other := cmdtest.Start(t, append(env, "ESCAPEMENT_REDIS_PARTITIONS=4"), "run", "--config", testkit.Write(t, sampleJobs))
		other.Exits(command.ExitRefused)
		if !strings.Contains(other.Stderr.Text(), "created with 1 partition") {
			t.Error("it does not say why")
		}
	})
	t.Run("broken history", func(t *testing.T) {
		breakHistory(t, redis)
		code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify", "--job", "often")
		if code != command.ExitFailed || !strings.Contains(stdout, "often") || !strings.Contains(stderr, "do not hold") {
			t.Errorf("exit %d, %q, %q: a missing row must be seen", code, stdout, stderr)
		}
	})
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
}

// scrub replaces the parts that differ from run to run.
func scrub(text string) string {
	for _, s := range [][2]string{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "TIME"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
		{`("token": )"\d{16}"`, `$1"TOKEN"`},
		{`(_ms": )-?\d+`, "${1}MS"},
		{`("(owned|running)": )\d+`, "${1}N"},
		{`("version": )"[^"]+"`, `$1"VERSION"`},
		{`("last(_success)?": )(null|"TIME")`, "${1}LAST"},
		{`("last_outcome": )"[^"]*"`, "${1}OUTCOME"},
		{`("open": )"[^"]*"`, `$1"OPEN"`},
		{`("zone_data": )"[^"]*"`, `$1"ZONES"`},
		{`("counts": )\{[^}]*\}`, "${1}COUNTS"},
	} {
		text = regexp.MustCompile(s[0]).ReplaceAllString(text, s[1])
	}
	return text
}

// breakHistory takes the oldest row of the job often out of Redis.
func breakHistory(t *testing.T, server *redistest.Server) {
	t.Helper()
	client := server.Client(t)
	keys, err := client.Keys(t.Context(), "*:history:often").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("got %v, %v", keys, err)
	}
	if err := client.LPop(t.Context(), keys[0]).Err(); err != nil {
		t.Fatal(err)
	}
}

// A list with a record that cannot be read is the rest of the list, a note on stderr and exit code
// 0, from Redis and over the API.
func TestListsWithGarbage(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"}, jobs.Job{Name: "follows", After: []string{"yearly"}})
	run := p.Wants(command.ExitDone, "-", "", "jobs", "run", "yearly")
	const bad = "99|x|y"
	for _, err := range []error{
		p.Client.HSet(t.Context(), "{escapement:0}:jobs", "long", bad).Err(), p.Client.HSet(t.Context(), "{escapement:0}:backfills", "long", bad).Err(),
		p.Client.HSet(t.Context(), "{escapement}:roster", "stranger", bad).Err(), p.Client.RPush(t.Context(), "{escapement}:audit", bad).Err(),
		p.Client.LPush(t.Context(), "{escapement:0}:history:yearly", bad).Err(), p.Client.HSet(t.Context(), "{escapement:0}:runs", "odd", bad).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	admin, err := ops.New(p.Client, "")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(opshttp.New(admin, opshttp.Config{}))
	t.Cleanup(server.Close)
	for list, want := range map[string]string{
		"jobs list": "yearly", "jobs graph": "follows", "runs list": run, "nodes list": "", "locks list": "", "generations list": "", "audit list": "jobs run", "jobs backfills": "",
	} {
		noted := slices.Contains([]string{"jobs list", "jobs graph", "nodes list", "audit list", "jobs backfills"}, list)
		for _, from := range [][]string{{"--redis", "redis://" + p.Server.Addr()}, {"--api", server.URL}} {
			for _, form := range []string{"table", "json"} {
				args := append(append(strings.Fields(list), from...), "-o", form)
				code, stdout, stderr := cmdtest.Call(nil, "", args...)
				if code != command.ExitDone || !strings.Contains(stdout, want) || noted && !strings.Contains(stderr, "read") {
					t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
				}
				if form == "json" && !json.Valid([]byte(stdout)) {
					t.Errorf("%v: %s", args, stdout)
				}
			}
		}
	}
	if code, stdout, stderr := cmdtest.Call(p.Env, "", "jobs", "get", "long"); code != command.ExitFailed || stdout != "" {
		t.Errorf("jobs get long: exit %d, %s%s", code, stdout, stderr)
	}
}

// Tools need only the connection: they work beside jobs that no node would take, and after a move
// from the same folder.
func TestToolsNeedTheConnection(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	files := func(text string) {
		t.Helper()
		for name, text := range map[string]string{config: text, filepath.Join(dir, "jobs.d", "z.yaml"): "jobs: [{name: z, schedule: nonsense}]\nnot: yaml: at all"} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	addr := p.Server.Addr()
	env := []string{"ESCAPEMENT_HTTP_LISTEN="}
	const work = `
jobs: [{name: a, schedule: "99 * * * *"}, {name: a}]
notify: {targets: [{name: x}]}
calendars: {de: {file: nosuch.ics}}
defaults: {ttl: 1ns}
history: {keep: 1}
handlers: {h: {}}
`
	files("redis: {url: redis://127.0.0.1:1, next: redis://" + addr + "}\n" + work)
	for _, line := range []string{"nodes list", "jobs list", "jobs pause yearly --reason x", "doctor", "backup -", "ledger verify", "lock a -- true", "audit list"} {
		code, stdout, stderr := cmdtest.Call(env, "", append(strings.Fields(line), "--config", config, "--redis", "redis://"+addr)...)
		if line == "lock a -- true" {
			code, stdout, stderr = cmdtest.Call(env, "", "lock", "--config", config, "--redis", "redis://"+addr, "a", "--", "true")
		}
		if code == command.ExitConfig || strings.Contains(stderr, "z.yaml") {
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
	files("redis: {url: 'rediss://127.0.0.1:1', tls: {ca_file: " + redistest.NewCertificates(t).CAFile + "}}\n")
	if code, _, stderr := cmdtest.Call(env, "", "jobs", "list", "--config", config, "--redis", "redis://"+addr); code != command.ExitDone {
		t.Errorf("tls: exit %d, %s", code, stderr)
	}
	files("redis: {url: redis://127.0.0.1:1}\n" + work)
	if code, _, stderr := cmdtest.Call(env, "", "run", "--config", config); code != command.ExitConfig || !strings.Contains(stderr, "z.yaml") || !strings.Contains(stderr, "jobs[") {
		t.Errorf("run: exit %d, %s", code, stderr)
	}
	if code, _, _ := cmdtest.Call(env, "", "config", "print", "--config", config); code != command.ExitConfig {
		t.Errorf("config print: exit %d", code)
	}
	for text, path := range map[string]string{"namepsace: x": "namepsace", "redis: {mode: x}": "redis.mode", "namespace: '?'": "namespace", "redis: {url: 'redis://h/x'}": "redis.url"} {
		files(text + work)
		if code, _, stderr := cmdtest.Call(env, "", "jobs", "list", "--config", config); code != command.ExitConfig || !strings.Contains(stderr, path) || strings.Contains(stderr, "jobs[") {
			t.Errorf("%s: exit %d, %s", text, code, stderr)
		}
	}
}

// TestDoctor finds nothing that must be done, and then a policy by which Redis drops keys, over
// Redis and over a node's API alike.
func TestDoctor(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, sampleJobs)
	node := []string{"ESCAPEMENT_API=" + p.Field("node starting", "http")}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := cmdtest.Call(env, "", "doctor")
		if code != command.ExitDone || !strings.Contains(stdout, "warning  node a1: it has no revision") || !strings.Contains(stdout, "\n         cure: build from a checkout") || !strings.Contains(stderr, "no error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
	}
	for _, setting := range []string{"maxmemory 1gb", "maxmemory-policy allkeys-lru"} {
		name, value, _ := strings.Cut(setting, " ")
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := cmdtest.Call(env, "", "doctor")
		if code != command.ExitFailed || !strings.HasPrefix(stdout, "error    server "+redis.Addr()+": it drops keys") || !strings.Contains(stderr, "1 error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
		code, stdout, _ = cmdtest.Call(env, "", "doctor", "-o", "json")
		if code != command.ExitFailed || !strings.Contains(stdout, `"code": "redis_evicts"`) {
			t.Errorf("exit %d, %s", code, stdout)
		}
	}
	if code, stdout, _ := cmdtest.Call(append(env, "ESCAPEMENT_NAMESPACE=other"), "", "doctor"); code != command.ExitFailed || !strings.Contains(stdout, "error    namespace other: no node has ever run") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, _, _ := cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=redis://" + cmdtest.ClosedPort(t)}, "", "doctor"); code != command.ExitUnreachable {
		t.Errorf("without Redis: exit %d", code)
	}
}

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
