package cli

import (
	"fmt"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestGuardInConfig: a job with a guard runs only under a lock of locks.driver, whose token it has.
func TestGuardInConfig(t *testing.T) {
	t.Parallel()
	servers := strings.Join([]string{"redis://" + redistest.Start(t).Addr(), "redis://" + redistest.Start(t).Addr(), "redis://" + redistest.Start(t).Addr()}, ",")
	config := func(guard string) string {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := `
locks: {driver: redlock, servers: [` + servers + `]}
node: {name: a1}
http: {listen: ""}
jobs:
  - {name: books, schedule: "@every 1s", ttl: 3s, guard: ` + guard + `, exec: {command: [sh, -c, "echo token=$ESCAPEMENT_TOKEN"]}}
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cmdtest.Expect(t, nil, command.ExitConfig, `"zookeeper" is not locks.driver, which is redlock`, "config", "validate", config("zookeeper"))
	env := cmdtest.RedisEnv(redistest.Start(t))
	p := cmdtest.Start(t, env, "run", "--config", config("redlock"))
	p.Logged("a run waits before it starts", `"for":"the guard redlock"`)
	if code, _, words := cmdtest.Call(nil, "", "locks", "bootstrap", "--driver", "redlock", "--servers", servers); code != command.ExitDone {
		t.Fatal(words)
	}
	p.Logged("run ended", `"outcome":"succeeded"`)
	var all []ops.RunView
	if _, out, _ := cmdtest.Call(env, "", "runs", "list", "--job", "books", "--outcome", "succeeded", "-o", "json"); ops.Decode([]byte(out), &all) != nil || len(all) == 0 {
		t.Fatal(out)
	}
	done := all[len(all)-1]
	_, out, _ := cmdtest.Call(env, "", "runs", "get", done.Run)
	if !strings.Contains(out, "waits for the guard redlock") || !strings.Contains(out, "token=1") || strings.Contains(out, fmt.Sprint("token=", done.Token)) {
		t.Errorf("its token is not the guard's: %s", out)
	}
}
