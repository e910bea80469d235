package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// eventually asks until something is so.
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
	redis, dir, outer := redistest.Start(t), t.TempDir(), t
	config := fmt.Sprintf(`
jobs:
  - name: often
    schedule: "@every 500ms"
    exec: {command: ["true"]}
  - name: sleeper
    schedule: "@yearly"
    exec: {command: [sh, -c, 'sleep 1000 & echo $$ $! >%[1]s/pids.new; mv %[1]s/pids.new %[1]s/pids; wait']}
  - name: second-time
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo try $ESCAPEMENT_ATTEMPT; test $ESCAPEMENT_ATTEMPT = 2']}
  - name: once
    schedule: "@yearly"
    exec: {command: [sh, -c, 'echo $ESCAPEMENT_TICK >>%[1]s/once']}
`, dir)
	p, env := startNode(t, redis, config)

	t.Run("run at, unique", func(t *testing.T) {
		asked := time.Now()
		id := tell(t, env, exitDone, "jobs", "run", "once", "--at", "+2s", "--unique", "k")
		if again := tell(t, env, exitDone, "jobs", "run", "once", "--at", "+2s", "--unique", "k", "--wait"); again != id {
			t.Errorf("two ids for one key: %s, %s", id, again)
		}
		if took := time.Since(asked); took < 2*time.Second {
			t.Errorf("it ran after %s", took)
		}
		r := decode[scheduler.RunView](t, env, "runs", "get", id)
		if ran := lines(t, filepath.Join(dir, "once")); len(ran) != 1 || ran[0] != r.Tick.String() || r.LagMS < 0 || r.LagMS > 2000 {
			t.Errorf("it ran at %v, recorded is %+v", ran, r)
		}
		if again := tell(t, env, exitDone, "jobs", "run", "once", "--unique", "k", "--wait"); again != id || len(lines(t, filepath.Join(dir, "once"))) != 1 {
			t.Errorf("asked again after its end it ran again, as %s", again)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		id := tell(t, env, exitDone, "jobs", "run", "sleeper")
		eventually(t, "the command begins", func() bool { return len(lines(t, filepath.Join(dir, "pids"))) == 2 })
		tell(t, env, exitDone, "runs", "cancel", id, "--reason", "enough", "--author", "ann")
		eventually(t, "the run ends", func() bool { return decode[scheduler.RunView](t, env, "runs", "get", id).Outcome != "running" })
		if r := decode[scheduler.RunView](t, env, "runs", "get", id); r.Outcome != "cancelled" || r.Reason != "cancelled by ann: enough" {
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
		if r := decode[scheduler.RunView](t, env, "runs", "get", next); r.Attempt != 2 || r.Outcome != "succeeded" || r.Trigger != "rerun" {
			t.Errorf("got %+v", r)
		}
		if _, stdout, _ := call(env, "", "runs", "get", next); !strings.HasSuffix(stdout, "\n\ntry 2\n") {
			t.Errorf("its output is not shown: %s", stdout)
		}
	})
	t.Run("remove a held job", func(t *testing.T) {
		if code, _, stderr := call(env, "", "jobs", "remove", "once"); code != exitRefused || !strings.Contains(stderr, "held by a1") {
			t.Errorf("exit %d, %s", code, stderr)
		}
	})
	t.Run("rewind", func(t *testing.T) {
		eventually(t, "a moment between two runs", func() bool {
			code, _, stderr := call(env, "", "jobs", "rewind", "often", "--to", "-2s")
			if code != exitDone && !strings.Contains(stderr, "in flight") {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			return code == exitDone
		})
		eventually(t, "ticks run again", func() bool {
			n := 0
			for _, r := range decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "often", "--outcome", "succeeded") {
				if r.Attempt == 2 {
					n++
				}
			}
			return n >= 3
		})
	})
	t.Run("a pause outlives the node", func(t *testing.T) {
		tell(t, env, exitDone, "jobs", "pause", "often", "--reason", "deploy", "-o", "json")
		p.signal(syscall.SIGTERM)
		p.exits(exitDone)
		p, _ = startNode(outer, redis, strings.ReplaceAll(config, "name: once", "name: another"))
		restarted := time.Now()
		paused := func() (ticks int64) {
			for _, r := range decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "often", "--outcome", "paused") {
				if time.Time(*r.Until).After(restarted) {
					ticks += *r.Count
				}
			}
			return ticks
		}
		eventually(t, "ticks after the restart are paused", func() bool { return paused() > 2 })
		j := decode[scheduler.JobView](t, env, "jobs", "get", "often")
		for _, r := range decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "often", "--outcome", "succeeded") {
			if j.Pause == nil || time.Time(*r.Tick).After(time.Time(*j.Pause.Since)) {
				t.Errorf("paused since %+v, and yet %s ran", j.Pause, r.Tick)
			}
		}
		resumed := time.Now()
		tell(t, env, exitDone, "jobs", "resume", "often", "-o", "json")
		eventually(t, "it runs again", func() bool {
			list := decode[[]scheduler.RunView](t, env, "runs", "list", "--job", "often", "--outcome", "succeeded")
			return len(list) > 0 && time.Time(*list[0].Tick).After(resumed)
		})
	})
	t.Run("remove", func(t *testing.T) {
		tell(t, env, exitDone, "jobs", "remove", "once", "-o", "json")
		if code, _, _ := call(env, "", "jobs", "get", "once"); code != exitNotFound {
			t.Errorf("exit %d", code)
		}
	})
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	if code, stdout, stderr := call(env, "", "ledger", "verify"); code != exitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}

// tell runs a tool, wants its exit code, and returns what it prints.
func tell(t *testing.T, env []string, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(env, "", args...)
	if code != want {
		t.Fatalf("%v: exit %d, want %d: %s", args, code, want, stderr)
	}
	return strings.TrimSpace(stdout)
}

// ended says whether a process is gone, or only waits to be buried by whoever inherited it.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
