package console_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// TestProgramOfTheDocument builds and runs the program in docs/console.md, and requests everything
// that it serves.
func TestProgramOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("no Go program in docs/console.md")
	}
	address := freeAddress(t)
	program := string(block[1])
	for from, to := range map[string]string{"127.0.0.1:8080": address, "redis://localhost:6379": "redis://" + redistest.Start(t).Addr()} {
		if !strings.Contains(program, from) {
			t.Fatalf("the program does not name %s", from)
		}
		program = strings.ReplaceAll(program, from, to)
	}
	run(t, program)
	ready, _ := ask(t, "http://"+address+"/readyz", func(status int, _ string) bool { return status == http.StatusOK })
	if ready != http.StatusOK {
		t.Fatalf("/readyz: %d", ready)
	}
	for path, has := range map[string]string{
		"/healthz": "", "/ops/": `data-name="shop"`, "/ops/api/v1/me": `"name":"ann"`, "/ops/api/v1/jobs": "settle-orders",
		"/metrics": "\nescapement_node_ready 1\n",
	} {
		if status, body := ask(t, "http://"+address+path, nil); status != http.StatusOK || !strings.Contains(body, has) {
			t.Errorf("%s: %d, without %q: %s", path, status, has, body)
		}
	}
	_, scraped := ask(t, "http://"+address+"/metrics", nil)
	families := regexp.MustCompile("`(escapement_[a-z_]+)").FindAllStringSubmatch(tableOf(t), -1)
	if len(families) < 13 {
		t.Fatalf("docs/metrics.md has only %v", families)
	}
	for _, f := range families {
		if !strings.Contains(scraped, "\n"+f[1]) {
			t.Errorf("/metrics lacks %s", f[1])
		}
	}
}

// tableOf is the table of metrics in docs/metrics.md.
func tableOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `escapement_") {
			rows.WriteString(strings.SplitN(line, "|", 3)[1] + "\n")
		}
	}
	return rows.String()
}

// run builds a program in this module and runs it until the test ends. It must then exit with 0.
func run(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("the program does not build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	p := exec.Command(binary)
	p.Stdout, p.Stderr = &out, &out
	p.Env = append(os.Environ(), "ANNS_PASSWORD=secret")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(30*time.Second, func() { _ = p.Process.Kill() })
		if err := p.Wait(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
		kill.Stop()
		if t.Failed() {
			t.Logf("the program said:\n%s", &out)
		}
	})
}

// ask sends a request as ann; with a condition again and again until it holds.
func ask(t *testing.T, url string, until func(status int, body string) bool) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("ann", "secret")
		if answer, err := client.Do(r); err == nil {
			b, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			status, body = answer.StatusCode, string(b)
		}
		if until == nil || until(status, body) {
			return status, body
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return status, body
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
