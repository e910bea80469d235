package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// within is how long an awaited event may take on a busy machine. It decides
// nothing but when a test gives up.
const within = 3 * time.Minute

// programDir is the folder that TestMain removes; empty when no test needed the program.
var programDir string

// program builds the program once, with the race detector when the tests have it.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "escapement-test-")
	if err != nil {
		return "", err
	}
	programDir = dir
	args := []string{"build", "-buildvcs=false", "-o", filepath.Join(dir, "escapement")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race")
			}
		}
	}
	if out, err := exec.Command("go", append(args, "../../escapement")...).CombinedOutput(); err != nil {
		return dir, &buildError{string(out), err}
	}
	return dir, nil
})

type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.out }

// asProgram in the environment makes the test binary the program itself, built as the tests are, as
// with the texts of mutants.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		Main(nil)
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// process is a running program. Its output is read as it comes.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *stream
	ended          chan struct{}
}

// stream is the output of a process, line by line.
type stream struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when there is more, or the end
	done  bool
}

func newStream(r io.Reader) *stream {
	s := &stream{more: make(chan struct{})}
	go func() {
		scan := bufio.NewScanner(r)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			s.add(scan.Text(), false)
		}
		s.add("", true)
	}()
	return s
}

func (s *stream) add(line string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !done {
		s.lines = append(s.lines, line)
	}
	s.done = done
	close(s.more)
	s.more = make(chan struct{})
}

func (s *stream) seen() (lines []string, done bool, more chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[:len(s.lines):len(s.lines)], s.done, s.more
}

func (s *stream) text() string {
	lines, _, _ := s.seen()
	return strings.Join(lines, "\n")
}

// start runs the program. It is killed at the end of the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	dir, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(filepath.Join(dir, "escapement"), args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=halt_on_error=1", "ESCAPEMENT_LOG_LEVEL=debug"}, env...)
	p.cmd.Dir = t.TempDir()
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdout, p.stderr = newStream(stdout), newStream(stderr)
	go func() {
		for _, s := range []*stream{p.stdout, p.stderr} { // Wait closes the pipes, so their contents are read first
			for done := false; !done; {
				var more chan struct{}
				if _, done, more = s.seen(); !done {
					<-more
				}
			}
		}
		_ = p.cmd.Wait() // the exit code is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // ended already, mostly
		<-p.ended
		if t.Failed() {
			t.Logf("%v\n--- stdout\n%s\n--- stderr\n%s", args, p.stdout.text(), p.stderr.text())
		}
	})
	return p
}

// await returns once the lines of a stream satisfy enough, and fails the test when
// they do not in time, or when the stream has ended before.
func (p *process) await(s *stream, what string, enough func(lines []string) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	for {
		lines, done, more := s.seen()
		if enough(lines) {
			return
		}
		if done {
			p.t.Fatalf("%s: the program ended before", what)
		}
		select {
		case <-more:
		case <-ctx.Done():
			p.t.Fatalf("%s: not within %s", what, within)
		}
	}
}

// logged returns once stderr has a log line with this message and these words.
func (p *process) logged(message string, words ...string) {
	p.t.Helper()
	p.await(p.stderr, "log "+message, func(lines []string) bool {
		return p.find(lines, message, words...) != ""
	})
}

func (p *process) find(lines []string, message string, words ...string) string {
	for _, line := range lines {
		ok := strings.Contains(line, `"message":"`+message)
		for _, w := range words {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			return line
		}
	}
	return ""
}

// field reads one text of the first log line with this message.
func (p *process) field(message, key string) string {
	p.t.Helper()
	p.logged(message)
	lines, _, _ := p.stderr.seen()
	said := map[string]any{}
	if err := json.Unmarshal([]byte(p.find(lines, message)), &said); err != nil {
		p.t.Fatal(err)
	}
	text, _ := said[key].(string)
	return text
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end and compares the exit code.
func (p *process) exits(want int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.t.Fatalf("still running after %s", within)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Fatalf("exit %d, want %d", got, want)
	}
}
