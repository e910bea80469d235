package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
)

// TestDoctor finds nothing that must be done, and then a policy by which Redis drops keys, over
// Redis and over a node's API alike.
func TestDoctor(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, sampleJobs)
	node := []string{"ESCAPEMENT_API=" + p.Field("node starting", "http")}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := cmdtest.Call(env, "", "doctor")
		if code != command.ExitDone || !strings.Contains(stdout, "warning  node a1: it has no revision") || !strings.Contains(stdout, "\n         cure: build from a checkout") || !strings.Contains(stderr, "no error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
	}
	for _, setting := range []string{"maxmemory 1gb", "maxmemory-policy allkeys-lru"} {
		name, value, _ := strings.Cut(setting, " ")
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, env := range [][]string{env, node} {
		code, stdout, stderr := cmdtest.Call(env, "", "doctor")
		if code != command.ExitFailed || !strings.HasPrefix(stdout, "error    server "+redis.Addr()+": it drops keys") || !strings.Contains(stderr, "1 error and") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
		code, stdout, _ = cmdtest.Call(env, "", "doctor", "-o", "json")
		if code != command.ExitFailed || !strings.Contains(stdout, `"code": "redis_evicts"`) {
			t.Errorf("exit %d, %s", code, stdout)
		}
	}
	if code, stdout, _ := cmdtest.Call(append(env, "ESCAPEMENT_NAMESPACE=other"), "", "doctor"); code != command.ExitFailed || !strings.Contains(stdout, "error    namespace other: no node has ever run") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, _, _ := cmdtest.Call([]string{"ESCAPEMENT_REDIS_URL=redis://" + cmdtest.ClosedPort(t)}, "", "doctor"); code != command.ExitUnreachable {
		t.Errorf("without Redis: exit %d", code)
	}
}
