package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

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
		id := cmdtest.Output(t, env, command.ExitDone, "jobs", "run", "sleeper")
		cmdtest.Eventually(t, "the command begins", func() bool { return len(cmdtest.Lines(t, filepath.Join(dir, "pids"))) == 2 })
		cmdtest.Output(t, env, command.ExitDone, "runs", "cancel", id, "--reason", "enough", "--author", "ann")
		cmdtest.Eventually(t, "the run ends", func() bool {
			return cmdtest.Decode[ops.RunView](t, env, "runs", "get", id).Outcome != jobs.OutcomeRunning
		})
		if r := cmdtest.Decode[ops.RunView](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeCancelled || r.Reason != "cancelled by ann: enough" {
			t.Errorf("got %+v", r)
		}
		for _, pid := range cmdtest.Lines(t, filepath.Join(dir, "pids")) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			cmdtest.Eventually(t, "process "+pid+" of the command is gone", func() bool { return cmdtest.Ended(n) })
		}
	})
	t.Run("rerun", func(t *testing.T) {
		id := cmdtest.Output(t, env, command.ExitRunFailed, "jobs", "run", "second-time", "--wait")
		next := cmdtest.Output(t, env, command.ExitDone, "runs", "rerun", id, "--wait")
		if r := cmdtest.Decode[ops.RunView](t, env, "runs", "get", next); r.Attempt != 2 || r.Outcome != jobs.OutcomeSucceeded || r.Trigger != "rerun" {
			t.Errorf("got %+v", r)
		}
		if _, stdout, _ := cmdtest.Call(env, "", "runs", "get", next); !strings.HasSuffix(stdout, "\n\ntry 2\n") {
			t.Errorf("its output is not shown: %s", stdout)
		}
	})
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
	if code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify"); code != command.ExitDone {
		t.Errorf("ledger verify: exit %d, %s%s", code, stdout, stderr)
	}
}

// A stored job runs a command that config.yaml names.
func TestHandlersOfTheConfiguration(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	config := testkit.Write(t, "handlers:\n  report: {exec: {command: [sh, -c, 'echo \"of $ESCAPEMENT_PAYLOAD\"']}}\n")
	node := cmdtest.Start(t, env, "run", "--config", config)
	node.Logged("node started")
	cmdtest.Eventually(t, "the handler is declared", func() bool {
		code, _, _ := cmdtest.Call(env, "", "jobs", "put", "report/7", "--handler", "report", "--schedule", "@every 1s", "--payload", `{"tenant": 7}`)
		return code == command.ExitDone
	})
	cmdtest.Eventually(t, "a run printed its payload", func() bool {
		_, out, _ := cmdtest.Call(env, "", "runs", "list", "--job", "report/7", "--outcome", "succeeded", "-o", "json")
		var list []runJSON
		if json.Unmarshal([]byte(out), &list) != nil || len(list) == 0 {
			return false
		}
		_, out, _ = cmdtest.Call(env, "", "runs", "logs", list[0].Run)
		return strings.Contains(out, `of {"tenant":7}`)
	})
	node.Signal(syscall.SIGTERM)
	node.Exits(command.ExitDone)
}
