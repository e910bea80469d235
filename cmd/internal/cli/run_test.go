package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// sampleJobs are the jobs of the tests below.
const sampleJobs = `
jobs:
  - name: often
    schedule: "@every 500ms"
    exec: {command: [sh, -c, 'echo hello']}
  - name: yearly
    schedule: "0 12 1 1 *"
    time_zone: Europe/Berlin
    ttl: 10s
    exec: {command: [sh, -c, 'test "$ESCAPEMENT_PAYLOAD" = "{\"n\":1}"']}
  - name: fails
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo this went wrong; exit 3']}
`

// startNode starts one node of a real Redis and returns when it is up.
func startNode(t *testing.T, redis *redistest.Server, jobs string, args ...string) (p *cmdtest.Running, env []string) {
	t.Helper()
	env = []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_NODE_NAME=a1"}
	p = cmdtest.Start(t, env, append([]string{"run", "--config", testkit.Write(t, jobs)}, args...)...)
	p.Logged("node started")
	p.Logged("without a revision, the definition registered last wins")
	return p, env
}

type runJSON struct {
	Run     string       `json:"run"`
	Job     string       `json:"job"`
	Token   string       `json:"token"`
	Node    string       `json:"node"`
	Trigger string       `json:"trigger"`
	Outcome jobs.Outcome `json:"outcome"`
	Error   string       `json:"error"`
	Tick    time.Time    `json:"tick"`
	Until   time.Time    `json:"until"`
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmdtest.Within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestRunDrains stops a node in the middle of a run: the run ends and is recorded, the node is not
// ready while it drains, and exits 0.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, `
jobs:
  - name: long
    schedule: "@every 1s"
    exec: {command: [sh, -c, 'sleep 3']}
`)
	url := p.Field("node starting", "http")
	p.Logged("run started", `"job":"long"`)
	cmdtest.Eventually(t, "the nodes are ready", func() bool {
		code, _ := get(t, url+"/readyz")
		return code == http.StatusOK
	})
	p.Signal(syscall.SIGTERM)
	p.Logged("draining")
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "a1: draining") {
		t.Errorf("/readyz while draining: %d %s", code, body)
	}
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz while draining: %d", code)
	}
	p.Exits(command.ExitDone)
	runs := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--outcome", "succeeded")
	if len(runs) != 1 || runs[0].Job != "long" || runs[0].Node != "a1" {
		t.Errorf("the run that was going is not recorded as succeeded: %+v", runs)
	}
	if code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}

// TestDrainTimeout cancels a run that does not end by itself.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, `
node: {drain_timeout: 100ms}
jobs:
  - name: endless
    schedule: "@every 1s"
    exec: {command: [sh, -c, 'sleep 1000']}
`)
	p.Logged("run started")
	p.Signal(syscall.SIGINT)
	p.Exits(command.ExitDone)
	if runs := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--outcome", "cancelled"); len(runs) != 1 {
		t.Errorf("got %+v, want one cancelled run", runs)
	}
}

// TestWaitForRedis starts a node before its Redis.
func TestWaitForRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	p := cmdtest.Start(t, env, "run", "--config", testkit.Write(t, sampleJobs), "--wait-for-redis")
	p.Logged("Redis does not answer")
	if code, body := get(t, p.Field("node starting", "http")+"/readyz"); code != http.StatusServiceUnavailable || body == "" {
		t.Errorf("/readyz without Redis: %d %s", code, body)
	}
	if err := redis.Restart(); err != nil {
		t.Fatal(err)
	}
	p.Logged("run started")
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
}

// TestDev expects the address first, then a line for each tick, each tick once, on several nodes,
// and exit 0 at Ctrl-C. With --redis "" it leaves the Redis of the environment alone, as make run
// does.
func TestDev(t *testing.T) {
	t.Parallel()
	jobs := "jobs:\n"
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		jobs += "  - {name: " + name + ", schedule: \"@every 500ms\", exec: {command: [\"true\"]}}\n"
	}
	p := cmdtest.Start(t, []string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_REDIS_URL=redis://127.0.0.1:1"}, "dev", "--redis", "", "--config", testkit.Write(t, jobs))
	p.Await(p.Stdout, "40 ticks", func(lines []string) bool { return len(lines) > 40 })
	lines, _, _ := p.Stdout.Seen()
	url := lines[0]
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	if code, body := get(t, url+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	p.Signal(syscall.SIGINT)
	p.Exits(command.ExitDone)

	shape := regexp.MustCompile(`^([a-f]) +tick (\S+Z)  node (dev-[123])  token \d{16}  lag \d+\.\dms$`)
	seen, nodes := map[string]bool{}, map[string]bool{}
	lines, _, _ = p.Stdout.Seen()
	for _, line := range lines[1:] {
		m := shape.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not the line of a tick: %q", line)
		}
		if seen[m[1]+m[2]] {
			t.Errorf("twice: %s", line)
		}
		seen[m[1]+m[2]], nodes[m[3]] = true, true
	}
	if len(nodes) < 2 {
		t.Errorf("all ticks ran on %v", nodes)
	}
	if strings.Contains(p.Stderr.Text(), `"level":"error"`) { // a slow machine earns its warnings
		t.Error("something went wrong")
	}

	p = cmdtest.Start(t, []string{"ESCAPEMENT_HTTP_LISTEN=" + redistest.Start(t).Addr()}, "dev", "--config", testkit.Write(t, jobs))
	p.Exits(command.ExitFailed)
	if text := p.Stderr.Text(); !strings.Contains(text, "address already in use") || !strings.Contains(text, "http.listen") {
		t.Errorf("a taken port: %s", text)
	}
}

// TestGuardInConfig: a job with a guard runs only under a lock of locks.driver, whose token it has.
func TestGuardInConfig(t *testing.T) {
	t.Parallel()
	servers := strings.Join([]string{"redis://" + redistest.Start(t).Addr(), "redis://" + redistest.Start(t).Addr(), "redis://" + redistest.Start(t).Addr()}, ",")
	config := func(guard string) string {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := `
locks: {driver: redlock, servers: [` + servers + `]}
node: {name: a1}
http: {listen: ""}
jobs:
  - {name: books, schedule: "@every 1s", ttl: 3s, guard: ` + guard + `, exec: {command: [sh, -c, "echo token=$ESCAPEMENT_TOKEN"]}}
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cmdtest.Expect(t, nil, command.ExitConfig, `"zookeeper" is not locks.driver, which is redlock`, "config", "validate", config("zookeeper"))
	env := cmdtest.RedisEnv(redistest.Start(t))
	p := cmdtest.Start(t, env, "run", "--config", config("redlock"))
	p.Logged("a run waits before it starts", `"for":"the guard redlock"`)
	if code, _, words := cmdtest.Call(nil, "", "locks", "bootstrap", "--driver", "redlock", "--servers", servers); code != command.ExitDone {
		t.Fatal(words)
	}
	p.Logged("run ended", `"outcome":"succeeded"`)
	var all []ops.RunView
	if _, out, _ := cmdtest.Call(env, "", "runs", "list", "--job", "books", "--outcome", "succeeded", "-o", "json"); ops.Decode([]byte(out), &all) != nil || len(all) == 0 {
		t.Fatal(out)
	}
	done := all[len(all)-1]
	_, out, _ := cmdtest.Call(env, "", "runs", "get", done.Run)
	if !strings.Contains(out, "waits for the guard redlock") || !strings.Contains(out, "token=1") || strings.Contains(out, fmt.Sprint("token=", done.Token)) {
		t.Errorf("its token is not the guard's: %s", out)
	}
}

// A node's stderr is a pipe that is full, or broken. The node runs its jobs, and drains when it is
// stopped. Its commands end by SIGPIPE as ever.
func TestNobodyReads(t *testing.T) {
	for _, name := range []string{"hangs", "is gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, full, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			if name == "hangs" {
				cmdtest.FillPipe(t, full)
			} else {
				_ = read.Close()
			}
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			lines := listen(t, fifo)
			config := testkit.Write(t, fmt.Sprintf(`jobs:
- {name: often, schedule: "* * * * * *", overlap: skip, exec: {command: [sh, -c, 'sh -c "kill -PIPE \$\$; echo survived > %[1]s"; echo ran > %[1]s']}}
`, fifo))
			node := cmdtest.Process(t, []string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_REDIS_URL=redis://" + redistest.Start(t).Addr()}, "run", "--config", config)
			node.Stderr = full
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			_ = full.Close()
			ended := make(chan error, 1)
			go func() { ended <- node.Wait() }()
			defer func() { _ = node.Process.Kill() }() // it has ended, if all is well
			late := time.After(cmdtest.Within)
			for range 3 {
				select {
				case line := <-lines:
					if line != "ran" {
						t.Errorf("a command says it %s", line)
					}
				case err := <-ended:
					t.Fatalf("the node ended: %v", err)
				case <-late:
					t.Fatal("it runs nothing")
				}
			}
			_ = node.Process.Signal(syscall.SIGTERM)
			for over := false; !over; {
				select {
				case <-lines:
				case <-late:
					t.Fatal("told to end, it goes on")
				case err := <-ended:
					if over = true; err != nil {
						t.Errorf("told to end: %v", err)
					}
				}
			}
		})
	}
}

// listen hands on the lines that are written to a FIFO while the test runs.
func listen(t *testing.T, path string) <-chan string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0) // its own writer, so that there is no end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lines := make(chan string)
	go func() {
		for scan := bufio.NewScanner(f); scan.Scan(); {
			select {
			case lines <- scan.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	return lines
}
