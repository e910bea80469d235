package execjob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// soon bounds every wait of these tests; it is reached only by a failure.
const soon = standstill

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

func TestContextEndsTheWholeGroup(t *testing.T) {
	cause := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	// A grandchild two shells down, and the command waiting for it.
	run, ended := started(ctx, f, grace, `echo begin; sh -c 'sleep 600 & echo "grandchild $!" >$F; wait' & wait`)
	grandchild := f.next(t, "grandchild")
	if gone(t, grandchild) {
		t.Fatal("the grandchild is not there to begin with")
	}
	cancel(cause)
	err := outcome(t, ended)
	if !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), "command sh ended: the lease is lost (signal: terminated): begin") {
		t.Errorf("error %v", err)
	}
	if !gone(t, grandchild) {
		t.Error("the grandchild is still there")
	}
	if got := string(run.Written()); got != "begin\n" {
		t.Errorf("output %q", got)
	}
}

func TestTermComesBeforeKill(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	run, ended := started(ctx, f, grace, `exec 2>/dev/null; trap 'echo tidied; exit 0' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	f.next(t, "ready")
	cancel(jobs.ErrTimeout)
	err := outcome(t, ended)
	// It ended well, but only because of SIGTERM: the run did not do its work.
	if !errors.Is(err, jobs.ErrTimeout) || !strings.Contains(err.Error(), "(exit status 0): tidied") {
		t.Errorf("error %v", err)
	}
	if got := string(run.Written()); got != "tidied\n" {
		t.Errorf("output %q", got)
	}
}

func TestKillReachesAGrandchildThatOutlivesTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	// The command ends at SIGTERM; its child ignores the signal.
	_, ended := started(ctx, f, 50*time.Millisecond,
		`sh -c 'trap "" TERM; sleep 600 & echo "grandchild $!" >$F; wait; sleep 600' & wait`)
	grandchild := f.next(t, "grandchild")
	cancel(jobs.ErrTimeout)
	if err := outcome(t, ended); !errors.Is(err, jobs.ErrTimeout) {
		t.Errorf("error %v", err)
	}
	if !gone(t, grandchild) {
		t.Error("the grandchild is still there")
	}
}

func TestStoppedCommandIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	_, ended := started(ctx, f, grace, `trap 'exit 4' TERM; echo "self $$" >$F; kill -STOP $$; sleep 600 & wait`)
	self := f.next(t, "self")
	deadline := time.After(soon)
	for stateOf(t, self) != 'T' {
		select {
		case <-deadline:
			t.Fatal("the command does not stop")
		case <-time.After(time.Millisecond):
		}
	}
	cancel(jobs.ErrTimeout)
	if err := outcome(t, ended); !errors.Is(err, jobs.ErrTimeout) || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("error %v", err)
	}
}

// A node that was stopped while a group was to end finds the deadline long past, and still kills before it gives up.
func TestClearKillsAfterAStandstill(t *testing.T) {
	f := newFifo(t)
	cmd := exec.Command("sh", "-c", `trap '' TERM; sleep 600 & echo "left $!" >$F`)
	cmd.Env = []string{"F=" + f.path}
	g := NewGroup(cmd)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	left := f.next(t, "left")
	t.Cleanup(g.Kill)
	g.Signal(syscall.SIGTERM)
	if err := g.clear(time.Now().Add(-time.Minute)); err != nil || !gone(t, left) {
		t.Errorf("error %v; what the command left is gone: %t", err, gone(t, left))
	}
}

// onWrite is a writer that calls a function.
type onWrite func([]byte)

func (w onWrite) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// A command that has become another user cannot be ended. The run reports it, once, and goes on,
// because nothing may run beside the command.
func TestCommandThatCannotBeEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	cmd := exec.Command("sh", "-c", `echo ready >$F; until [ -e $F.end ]; do sleep 0.01; done; exit 3`)
	cmd.Env = []string{"F=" + f.path, "PATH=" + os.Getenv("PATH")}
	g := NewGroup(cmd)
	g.kill = func(pid int, sig syscall.Signal) error {
		if sig == 0 {
			return syscall.Kill(pid, sig)
		}
		return syscall.EPERM
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	f.next(t, "ready")
	cancel(jobs.ErrTimeout)
	var log bytes.Buffer
	in := info()
	in.Logger = slog.New(slog.NewTextHandler(onWrite(func(p []byte) {
		log.Write(p)
		if err := os.WriteFile(f.path+".end", nil, 0o600); err != nil { // from here on it may end by itself
			t.Error(err)
		}
	}), nil))
	run := jobs.NewRun(in)
	defer time.AfterFunc(standstill, func() { _ = os.WriteFile(f.path+".end", nil, 0o600) }).Stop() // the run reported nothing
	cause, err := runner{grace: time.Millisecond}.supervise(ctx, cmd, g, run)
	g.Close()
	var exit *exec.ExitError
	if !errors.Is(cause, jobs.ErrTimeout) || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%v, %v", cause, err)
	}
	const words = "cannot be ended: operation not permitted; it has become another user's"
	if out := string(run.Written()); strings.Count(out, words) != 1 || !strings.HasPrefix(out, "escapement: the command does not end though it was killed; the run goes on until it ends: process ") {
		t.Errorf("wrote %q", out)
	}
	if strings.Count(log.String(), words) != 1 {
		t.Errorf("logged %s", log.String())
	}
}

// A lease that is over ends a command that ignores SIGTERM before the grace is, also where the
// supervisor has no line about it yet.
func TestLeaseThatIsOverCutsTheGrace(t *testing.T) {
	f := newFifo(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	var ends atomic.Int64
	ends.Store(time.Now().Add(time.Hour).UnixNano())
	in := info()
	in.Lease = lease{func() time.Time { return time.Unix(0, ends.Load()) }, time.Second}
	c := shell(`trap '' TERM; echo "self $$" >$F; while :; do sleep 0.01; done`)
	c.Env = map[string]string{"F": f.path}
	ended := make(chan error, 1)
	go func() { ended <- runner{command: c, grace: time.Hour}.run(ctx, jobs.NewRun(in)) }()
	f.next(t, "self")
	ends.Store(time.Now().Add(-time.Minute).UnixNano()) // as after a standstill
	cancel(errors.New("lease lost"))
	if err := outcome(t, ended); err == nil || !strings.Contains(err.Error(), "lease lost (signal: killed)") {
		t.Errorf("error %v", err)
	}
}

func TestAProcessThatLeftTheGroupDoesNotHoldTheRun(t *testing.T) {
	f := newFifo(t)
	run, ended := started(t.Context(), f, grace, `echo done; setsid sh -c 'echo "away $$" >$F; touch $F.away; exec sleep 600' &
		while [ ! -e $F.away ]; do sleep 0.01; done`)
	away := f.next(t, "away")
	t.Cleanup(func() { _ = syscall.Kill(away, syscall.SIGKILL) })
	if err := outcome(t, ended); err != nil {
		t.Errorf("error %v", err)
	}
	if gone(t, away) {
		t.Error("it was reached after all; the package comment says otherwise")
	}
	if got := string(run.Written()); got != "done\n" {
		t.Errorf("output %q", got)
	}
}

// A node that is process 1 of a container inherits the orphans of its commands. An ended orphan
// must not count as a member of the group for ever.
func TestOrphansAreReaped(t *testing.T) {
	const setChildSubreaper = 36 // prctl(2): orphans come to this process, as to process 1
	set := func(on uintptr) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, on, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(1)
	t.Cleanup(func() { set(0) })
	f := newFifo(t)
	// With a long grace: were the dead orphan counted, the run would not end in time.
	_, ended := started(t.Context(), f, 2*soon, `sleep 600 & echo "left $!" >$F`)
	left := f.next(t, "left")
	if err := outcome(t, ended); err != nil {
		t.Errorf("error %v", err)
	}
	if err := syscall.Kill(left, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the orphan is still a process: %v", err)
	}
}

// A member that has ended but is not reaped by its parent is no reason to wait, and none
// to call the run failed.
func TestADeadMemberIsNotWaitedFor(t *testing.T) {
	f := newFifo(t)
	// The subshell starts a child in the group, leaves the group and never looks back.
	_, ended := started(t.Context(), f, 200*time.Millisecond, `(
			while [ ! -e $F.away ]; do sleep 0.01; done &
			exec setsid sh -c 'echo "away $$" >$F; : >$F.away; exec sleep 600'
		) >/dev/null 2>&1 &
		while [ ! -e $F.away ]; do sleep 0.01; done`)
	away := f.next(t, "away")
	t.Cleanup(func() { _ = syscall.Kill(away, syscall.SIGKILL) })
	if err := outcome(t, ended); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		text  string
		state byte
		pgid  int
		ok    bool
	}{
		{"12 (sh) S 1 12 12 0", 'S', 12, true},
		{"12 (a) Z 1 9 (b c) Z 1 34 12 0", 'Z', 34, true},
		{"12 (sh) S 1", 0, 0, false},
		{"12 (sh) S 1 x", 'S', 0, false},
		{"", 0, 0, false},
	} {
		if state, pgid, ok := parseStat([]byte(c.text)); state != c.state || pgid != c.pgid || ok != c.ok {
			t.Errorf("%q: %q %d %v", c.text, state, pgid, ok)
		}
	}
}

func TestKillComesAfterTheGrace(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFifo(t)
	// Both ignore SIGTERM; an ignored signal is inherited.
	_, ended := started(ctx, f, 50*time.Millisecond, `trap '' TERM; sleep 600 & echo "child $!" >$F; wait; sleep 600`)
	child := f.next(t, "child")
	cancel(jobs.ErrTimeout)
	err := outcome(t, ended)
	if !errors.Is(err, jobs.ErrTimeout) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error %v", err)
	}
	if !gone(t, child) {
		t.Error("the child is still there")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	f := newFifo(t)
	// The command succeeds at once and leaves something in its group.
	run, ended := started(t.Context(), f, grace, `sleep 600 & echo "left $!" >$F; echo done`)
	left := f.next(t, "left")
	if err := outcome(t, ended); err != nil {
		t.Errorf("error %v", err)
	}
	if !gone(t, left) {
		t.Error("what the command left is still there")
	}
	if got := string(run.Written()); got != "done\n" {
		t.Errorf("output %q", got)
	}
}
