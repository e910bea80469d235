package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// eventually polls a condition until it is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(within)
	for tick := time.NewTicker(50 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %s", what, within)
		}
	}
}

// lines of a file that a job writes; none while it is not there.
func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestOperateNode does to a running node what an operator may do.
func TestOperateNode(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Start(t), t.TempDir()
	config := fmt.Sprintf(`
jobs:
  - name: sleeper
    schedule: "@yearly"
    exec: {command: [sh, -c, 'sleep 1000 & echo $$ $! >%[1]s/pids.new; mv %[1]s/pids.new %[1]s/pids; wait']}
  - name: second-time
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo try $ESCAPEMENT_ATTEMPT; test $ESCAPEMENT_ATTEMPT = 2']}
`, dir)
	p, env := startNode(t, redis, config)

	t.Run("cancel", func(t *testing.T) {
		id := tell(t, env, exitDone, "jobs", "run", "sleeper")
		eventually(t, "the command begins", func() bool { return len(lines(t, filepath.Join(dir, "pids"))) == 2 })
		tell(t, env, exitDone, "runs", "cancel", id, "--reason", "enough", "--author", "ann")
		eventually(t, "the run ends", func() bool { return decode[ops.RunView](t, env, "runs", "get", id).Outcome != jobs.OutcomeRunning })
		if r := decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeCancelled || r.Reason != "cancelled by ann: enough" {
			t.Errorf("got %+v", r)
		}
		for _, pid := range lines(t, filepath.Join(dir, "pids")) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "process "+pid+" of the command is gone", func() bool { return ended(n) })
		}
	})
	t.Run("rerun", func(t *testing.T) {
		id := tell(t, env, exitRunFailed, "jobs", "run", "second-time", "--wait")
		next := tell(t, env, exitDone, "runs", "rerun", id, "--wait")
		if r := decode[ops.RunView](t, env, "runs", "get", next); r.Attempt != 2 || r.Outcome != jobs.OutcomeSucceeded || r.Trigger != "rerun" {
			t.Errorf("got %+v", r)
		}
		if _, stdout, _ := call(env, "", "runs", "get", next); !strings.HasSuffix(stdout, "\n\ntry 2\n") {
			t.Errorf("its output is not shown: %s", stdout)
		}
	})
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	if code, stdout, stderr := call(env, "", "ledger", "verify"); code != exitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}

// Runs a tool, wants its exit code, and returns its output.
func tell(t *testing.T, env []string, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(env, "", args...)
	if code != want {
		t.Fatalf("%v: exit %d, want %d: %s", args, code, want, stderr)
	}
	return strings.TrimSpace(stdout)
}

// ended reports whether a process is gone, or is a zombie that its parent has not reaped.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
