package execjob

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// soon bounds every wait of these tests; it is reached only by a failure.
const soon = 10 * time.Second

// fifo is how a script under test talks to the test: each line it writes is an event.
type fifo struct {
	path  string
	lines chan string
}

func newFifo(t *testing.T) *fifo {
	t.Helper()
	f := &fifo{path: filepath.Join(t.TempDir(), "events"), lines: make(chan string, 16)}
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opened for both, so that it neither blocks here nor ends between two writers.
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	go func() {
		for scan := bufio.NewScanner(file); scan.Scan(); {
			f.lines <- scan.Text()
		}
	}()
	return f
}

// next returns the number after the event's name, 0 when there is none.
func (f *fifo) next(t *testing.T, event string) int {
	t.Helper()
	select {
	case line := <-f.lines:
		name, number, _ := strings.Cut(line, " ")
		if name != event {
			t.Fatalf("event %q, want %q", line, event)
		}
		n, err := strconv.Atoi(number)
		if err != nil && number != "" {
			t.Fatal(err)
		}
		return n
	case <-time.After(soon):
		t.Fatalf("no event %q", event)
	}
	return 0
}

// stateOf returns the letter of a process in the process table, 0 when it is not there.
func stateOf(t *testing.T, pid int) byte {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		// Gone before it was opened, or between that and reading.
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return 0
		}
		t.Fatal(err)
	}
	state, _, ok := parseStat(text)
	if !ok {
		t.Fatalf("process %d: %q", pid, text)
	}
	return state
}

// gone reports whether the process has ended; it may still wait to be reaped.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	state := stateOf(t, pid)
	return state == 0 || state == 'Z' || state == 'X'
}

// started runs a script in the background with the fifo as $F.
func started(ctx context.Context, f *fifo, grace time.Duration, script string) (*jobs.Run, <-chan error) {
	c := shell(script)
	c.Env = map[string]string{"F": f.path}
	r := runner{command: c, grace: grace}
	run := jobs.NewRun(info())
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx, run) }()
	return run, ended
}

func outcome(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(soon):
		t.Fatal("the run does not end")
		return nil
	}
}
