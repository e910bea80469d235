package lock

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
)

// TestRedisConfirm expects redis.confirm to hold for commands under a lock, and to be refused
// without replicas that could confirm.
func TestRedisConfirm(t *testing.T) {
	t.Parallel()
	confirm := "ESCAPEMENT_REDIS_CONFIRM=replicas"
	lone := redistest.Start(t)
	code, stdout, stderr := cmdtest.Call(append(cmdtest.RedisEnv(lone), confirm), "", "lock", "a", "--", "echo", "ran")
	if code != command.ExitUnreachable || stdout != "" || !strings.Contains(stderr, "only 0 of the 1 replicas") {
		t.Errorf("without a replica: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	master, _ := redistest.StartReplicas(t, 1)
	if code, stdout, stderr = cmdtest.Call(append(cmdtest.RedisEnv(master), confirm), "", "lock", "a", "--", "echo", "ran"); code != command.ExitDone || stdout != "ran\n" {
		t.Errorf("with a replica: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = cmdtest.Call(append(cmdtest.RedisEnv(master), confirm, "ESCAPEMENT_REDIS_REPLICAS=4"), "", "lock", "a", "--", "echo", "ran")
	if code != command.ExitUnreachable || stdout != "" || !strings.Contains(stderr, "only 1 of the 2 replicas") {
		t.Errorf("with one of four replicas: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
