package promtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	root = "../../.."
	// standstill bounds each wait: only a machine that stands still reaches it.
	standstill = 3 * time.Minute
	// pollEvery is how often an event that cannot be awaited is looked for.
	pollEvery = 500 * time.Millisecond
)

// program is the path of the program named, or ends the test with the package that has it.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: install Debian's package prometheus (make alerts does, as root)", name)
	}
	return path
}

// build builds the program that ships.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "escapement")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./cmd/escapement")
	cmd.Dir = filepath.FromSlash(root)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// output keeps the last lines that a process printed.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() > 1<<20 {
		o.b.Reset()
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(o.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// process is a server or a node. It ends with the test, and with this process.
type process struct {
	*exec.Cmd
	ended chan struct{}
	out   output
}

func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.out, &p.out
	p.SysProcAttr, p.WaitDelay = attributes(), 2*time.Second // children may hold the output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s:\n%s", filepath.Base(name), strings.Join(args, " "), p.out.String())
		}
	})
	return p
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	_ = p.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// freeAddr is a loopback address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// write writes a file.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// get decodes the JSON of an address.
func get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body)
		return fmt.Errorf("%s: %s: %s", address, resp.Status, text.String())
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// await polls until done returns true. what names the event.
func await(t *testing.T, what string, done func() (yes bool, state string)) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(pollEvery) {
		yes, state := done()
		if yes {
			return
		}
		if time.Since(began) > standstill {
			t.Fatalf("%s: not within %v; at last: %s", what, standstill, state)
		}
	}
}

// labels are the labels of a series or of an alert.
type labels map[string]string

// prom is a running Prometheus.
type prom struct{ url string }

// startProm starts a Prometheus with that configuration and awaits that it is ready.
func startProm(t *testing.T, config string) prom {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	start(t, nil, program(t, "prometheus"), "--config.file="+write(t, filepath.Join(dir, "prometheus.yaml"), config),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	p := prom{"http://" + addr}
	await(t, "Prometheus is ready", func() (bool, string) {
		var list struct{ Status string }
		err := get(t.Context(), p.url+"/api/v1/labels", &list)
		return err == nil, fmt.Sprint(err)
	})
	return p
}

// firing lists the alerts that fire.
func (p prom) firing(t *testing.T) (list []labels) {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels labels
				State  string
			}
		}
	}
	if err := get(t.Context(), p.url+"/api/v1/alerts", &answer); err != nil {
		t.Fatal(err)
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			list = append(list, a.Labels)
		}
	}
	return list
}

// sample is a series and its last value.
type sample struct {
	Metric labels
	Value  [2]any
}

// query returns the samples of an expression.
func (p prom) query(t *testing.T, expr string) []sample {
	t.Helper()
	var answer struct {
		Data struct{ Result []sample }
	}
	if err := get(t.Context(), p.url+"/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		t.Errorf("%s: %v", expr, err)
	}
	return answer.Data.Result
}

// strings returns a list: the names of labels, or the values of one label.
func (p prom) strings(t *testing.T, path string) []string {
	t.Helper()
	var answer struct{ Data []string }
	if err := get(t.Context(), p.url+path, &answer); err != nil {
		t.Error(err)
	}
	return answer.Data
}
