//go:build unix

package cronlock_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// Three processes with a robfig/cron each, whose clocks are 1.2 s ahead, right, and 1.5 s behind, are killed at random and
// started again. At the sink no tick runs twice, and the tokens increase.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	length := 30 * time.Second
	if testing.Short() {
		length = 10 * time.Second
	}
	bin := buildNode(t)
	server := redistest.Start(t)
	s := &sink{}
	receiver := httptest.NewServer(s)
	t.Cleanup(receiver.Close)

	skews := []time.Duration{1200 * time.Millisecond, 0, -1500 * time.Millisecond}
	nodes := make([]*node, len(skews))
	for i, skew := range skews {
		nodes[i] = &node{bin: bin, skew: skew, args: []string{server.Addr(), receiver.URL, fmt.Sprint("n", i)}}
		t.Cleanup(nodes[i].kill)
	}
	nodes[1].start(t)
	nodes[2].start(t)
	began := time.Now()
	seed := uint64(began.UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills, down := 0, nodes[0]
	pause := time.After(4 * time.Second) // ticks for the other nodes: the node ahead has most of them once it is up
	for end := time.After(length); ; {
		select {
		case <-end:
			if s.nodes() < 2 && time.Since(began) < time.Minute { // on a busy machine a node takes seconds to start
				end = time.After(time.Second)
				continue
			}
			for _, n := range nodes {
				n.kill()
			}
			s.judge(t, time.Since(began), skews[0]-skews[2], kills)
			return
		case <-pause:
		}
		down.start(t)
		down = nodes[max(0, random.IntN(4)-1)] // the node ahead in half of the cases: it has most runs
		down.kill()
		kills++
		pause = time.After(time.Duration(300+random.IntN(2500)) * time.Millisecond)
	}
}

// sink receives each run, in order.
type sink struct {
	mu   sync.Mutex
	runs []url.Values
}

func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, r.URL.Query())
}

// nodes counts the nodes that have run a job.
func (s *sink) nodes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]bool)
	for _, run := range s.runs {
		seen[run.Get("node")] = true
	}
	return len(seen)
}

// judge checks the runs of a time in which clocks differed by spread.
func (s *sink) judge(t *testing.T, lasted, spread time.Duration, kills int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	count, byNode, ticks := map[string]int{}, map[string]int{}, map[string]string{}
	last := int64(0)
	for _, run := range s.runs {
		entry, node, tick := run.Get("entry"), run.Get("node"), run.Get("tick")
		count[entry]++
		byNode[node]++
		if entry == "plain" {
			continue
		}
		if other, twice := ticks[tick]; twice {
			t.Errorf("tick %s ran on %s and on %s", tick, other, node)
		}
		ticks[tick] = node
		token, err := strconv.ParseInt(run.Get("token"), 10, 64)
		if err != nil || token <= last {
			t.Errorf("tick %s: token %q (%v) after %d", tick, run.Get("token"), err, last)
		}
		last = token
	}
	t.Logf("%d kills in %s; runs by entry %v, by node %v", kills, lasted.Round(time.Second), count, byNode)
	// Whatever ticks the nodes claim, there was one tick a second, from the first tick to the last
	// by the clock ahead.
	most := int((lasted+spread)/time.Second) + 1
	for _, entry := range []string{"plain", "fenced"} {
		if n := count[entry]; n > most || n < int(lasted/time.Second)/4 {
			t.Errorf("entry %s: %d runs in %s; want a quarter of the seconds at least, and at most %d", entry, n, lasted, most)
		}
	}
	if len(byNode) < 2 {
		t.Errorf("all runs were on %v; the nodes did not compete", byNode)
	}
}

// node is one machine.
type node struct {
	bin  string
	args []string
	skew time.Duration
	cmd  *exec.Cmd
	in   io.Closer
	said *bytes.Buffer
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.cmd = exec.Command(n.bin, n.args...)
	n.cmd.Env = append(os.Environ(), "CRON_SKEW="+n.skew.String())
	n.said = new(bytes.Buffer)
	n.cmd.Stderr = n.said
	in, err := n.cmd.StdinPipe() // the node ends with this process, too
	if err != nil {
		t.Fatal(err)
	}
	n.in = in
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := n.said
	t.Cleanup(func() {
		if t.Failed() && said.Len() > 0 {
			t.Logf("node %s:\n%s", n.args[2], said)
		}
	})
}

// kill ends the node at once, kill -9, and may be called again.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	_ = n.in.Close()
}

// buildNode builds testdata/node with a copy of robfig/cron whose clock is off by CRON_SKEW. Nothing else of the program
// is changed: this library reads no clock of the machine to claim a tick.
func buildNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cronDir := strings.TrimSpace(goTool(t, "list", "-m", "-f", "{{.Dir}}", "github.com/robfig/cron/v3"))
	root := filepath.Dir(strings.TrimSpace(goTool(t, "env", "GOMOD")))

	copied := filepath.Join(dir, "cron")
	if err := os.CopyFS(copied, os.DirFS(cronDir)); err != nil {
		t.Fatal(err)
	}
	patch(t, filepath.Join(copied, "cron.go"), map[string]string{
		"now = now.In(c.location)":         "now = now.Add(skew).In(c.location)",
		"return time.Now().In(c.location)": "return time.Now().Add(skew).In(c.location)",
	})
	write(t, filepath.Join(copied, "skew.go"), `package cron

import (
	"os"
	"time"
)

var skew, _ = time.ParseDuration(os.Getenv("CRON_SKEW"))
`)
	mod := filepath.Join(dir, "go.mod")
	write(t, mod, read(t, filepath.Join(root, "go.mod"))+"\nreplace github.com/robfig/cron/v3 => "+copied+"\n")
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	bin := filepath.Join(dir, "node")
	goTool(t, "build", "-buildvcs=false", "-modfile="+mod, "-o", bin, "./testdata/node")
	return bin
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &said)
	}
	return string(out)
}

func patch(t *testing.T, file string, changes map[string]string) {
	t.Helper()
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	text := read(t, file)
	for old, changed := range changes {
		if strings.Count(text, old) != 1 {
			t.Fatalf("%s: %q is there %d times, want once: robfig/cron has changed", file, old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, changed, 1)
	}
	write(t, file, text)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
