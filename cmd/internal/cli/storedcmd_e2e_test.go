//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

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
