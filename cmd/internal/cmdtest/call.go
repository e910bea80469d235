//go:build unix

// Package cmdtest runs command lines in tests: in the process of the test, and in processes of their
// own.
package cmdtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/scheduler/ops"
)

// Within is how long an awaited event may take on a busy machine. It decides
// nothing but when a test gives up.
const Within = 3 * time.Minute

// asProgram in the environment makes the test binary the program itself.
const asProgram = "TEST_AS_PROGRAM"

// program has the commands of the package under test.
var program []func(*command.App) *cobra.Command

// Main runs the tests of a package whose command lines are made of these commands, and ends the
// process. No test leaves a goroutine behind.
func Main(m *testing.M, commands ...func(*command.App) *cobra.Command) {
	program = commands
	if os.Getenv(asProgram) != "" {
		os.Exit(NewApp().Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// NewApp is an invocation of the program.
func NewApp() *command.App { return &command.App{Commands: program} }

// Call runs one command line in this process.
func Call(env []string, stdin string, args ...string) (code int, stdout, stderr string) {
	var out strings.Builder
	var words Buffer // a locker logs beside the messages
	code = NewApp().Run(args, strings.NewReader(stdin), &out, &words, env)
	return code, out.String(), words.String()
}

// ClosedPort is an address where nothing listens.
func ClosedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Decode runs a tool that must succeed and reads its JSON.
func Decode[T any](t *testing.T, env []string, args ...string) T {
	t.Helper()
	code, stdout, stderr := Call(env, "", append(args, "-o", "json")...)
	if code != command.ExitDone {
		t.Fatalf("%v: exit %d, %s", args, code, stderr)
	}
	var v T
	read := json.Unmarshal
	if strings.Contains(reflect.TypeFor[T]().String(), "ops.") {
		read = ops.Decode
	}
	if err := read([]byte(stdout), &v); err != nil {
		t.Fatalf("%v: %v in %s", args, err, stdout)
	}
	return v
}

// Output runs a command that ends with a code, and returns its output.
func Output(t *testing.T, env []string, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := Call(env, "", args...)
	if code != want {
		t.Fatalf("%v: exit %d, want %d: %s", args, code, want, stderr)
	}
	return strings.TrimSpace(stdout)
}

// Expect runs a command, and compares its exit code and a part of its output.
func Expect(t *testing.T, env []string, code int, words string, args ...string) {
	t.Helper()
	got, stdout, stderr := Call(env, "", args...)
	if got != code || !strings.Contains(stdout+stderr, words) {
		t.Errorf("%v: exit %d, want %d\n%s%swant %q", args, got, code, stdout, stderr, words)
	}
}

// Buffer is a writer that can be read meanwhile.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (h *Buffer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

// String returns the text so far.
func (h *Buffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// FullDisk takes nothing.
type FullDisk struct{}

func (FullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Eventually polls a condition until it is true.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(Within)
	for tick := time.NewTicker(50 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %s", what, Within)
		}
	}
}

// Lines of a file that a job writes; none while it is not there.
func Lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a file of the test
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Ended reports whether a process is gone, or is a zombie that its parent has not reaped.
func Ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
