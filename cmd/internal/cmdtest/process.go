//go:build unix

package cmdtest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Running is a process of the program. Its output is read as it comes.
type Running struct {
	T              *testing.T
	Cmd            *exec.Cmd
	Stdout, Stderr *Stream
	ended          chan struct{}
}

// Stream is the output of a process, line by line.
type Stream struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when there is more, or the end
	done  bool
}

func newStream(r io.Reader) *Stream {
	s := &Stream{more: make(chan struct{})}
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

func (s *Stream) add(line string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !done {
		s.lines = append(s.lines, line)
	}
	s.done = done
	close(s.more)
	s.more = make(chan struct{})
}

// Seen returns the lines so far, whether the stream has ended, and a channel that is closed by the
// next line.
func (s *Stream) Seen() (lines []string, done bool, more chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[:len(s.lines):len(s.lines)], s.done, s.more
}

// Text returns the lines so far.
func (s *Stream) Text() string {
	lines, _, _ := s.Seen()
	return strings.Join(lines, "\n")
}

// Process is the program as a process, which the caller starts: the test binary, which is built as
// the tests are, with the race detector and the texts of mutants.
func Process(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...) //nolint:gosec // this program
	cmd.Env = append([]string{asProgram + "=1", "GOCOVERDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=halt_on_error=1", "ESCAPEMENT_LOG_LEVEL=debug"}, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

// Start starts a process, which is killed at the end of the test.
func Start(t *testing.T, env []string, args ...string) *Running {
	t.Helper()
	p := &Running{T: t, Cmd: Process(t, env, args...), ended: make(chan struct{})}
	stdout, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = newStream(stdout), newStream(stderr)
	go func() {
		for _, s := range []*Stream{p.Stdout, p.Stderr} { // Wait closes the pipes, so their contents are read first
			for done := false; !done; {
				var more chan struct{}
				if _, done, more = s.Seen(); !done {
					<-more
				}
			}
		}
		_ = p.Cmd.Wait() // the exit code is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // Ended already, mostly
		<-p.ended
		if t.Failed() {
			t.Logf("%v\n--- stdout\n%s\n--- stderr\n%s", args, p.Stdout.Text(), p.Stderr.Text())
		}
	})
	return p
}

// Await returns once the lines of a stream satisfy enough, and fails the test when
// they do not in time, or when the stream has ended before.
func (p *Running) Await(s *Stream, what string, enough func(lines []string) bool) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), Within)
	defer cancel()
	for {
		lines, done, more := s.Seen()
		if enough(lines) {
			return
		}
		if done {
			p.T.Fatalf("%s: the program ended before", what)
		}
		select {
		case <-more:
		case <-ctx.Done():
			p.T.Fatalf("%s: not within %s", what, Within)
		}
	}
}

// Logged returns once stderr has a log line with this message and these words.
func (p *Running) Logged(message string, words ...string) {
	p.T.Helper()
	p.Await(p.Stderr, "log "+message, func(lines []string) bool {
		return p.Find(lines, message, words...) != ""
	})
}

// Find returns the first log line with this message and these words; "" for none.
func (p *Running) Find(lines []string, message string, words ...string) string {
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

// Field reads one text of the first log line with this message.
func (p *Running) Field(message, key string) string {
	p.T.Helper()
	p.Logged(message)
	lines, _, _ := p.Stderr.Seen()
	said := map[string]any{}
	if err := json.Unmarshal([]byte(p.Find(lines, message)), &said); err != nil {
		p.T.Fatal(err)
	}
	text, _ := said[key].(string)
	return text
}

// Signal sends a signal to the process.
func (p *Running) Signal(s syscall.Signal) {
	p.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.T.Fatal(err)
	}
}

// Exits waits for the end and compares the exit code.
func (p *Running) Exits(want int) {
	p.T.Helper()
	select {
	case <-p.ended:
	case <-time.After(Within):
		p.T.Fatalf("still running after %s", Within)
	}
	if got := p.Cmd.ProcessState.ExitCode(); got != want {
		p.T.Fatalf("exit %d, want %d", got, want)
	}
}

// FillPipe fills a pipe until it takes no more.
func FillPipe(t *testing.T, pipe *os.File) {
	t.Helper()
	fd := int(pipe.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4096, 1} {
		for {
			if _, err := syscall.Write(fd, make([]byte, size)); err != nil {
				break
			}
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}
