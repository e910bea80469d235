package lock

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestLockAtAReplica wants a remedy in the error about a read-only Redis.
func TestLockAtAReplica(t *testing.T) {
	s, err := redistest.StartProcess(redistest.ProcessConfig{Dir: t.TempDir(), Args: []string{"--replicaof", "127.0.0.1", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Kill() }()
	cmdtest.Expect(t, cmdtest.RedisEnv(s), command.ExitUnreachable, "is a replica, which takes no writes", "lock", "a", "--", "true")
	cmdtest.Expect(t, cmdtest.RedisEnv(s), command.ExitUnreachable, "name its master, or the sentinels that know it", "lock", "a", "--", "true")
}

// TestLockCodes wants the command's own code, a shell's code for a command that did not run, and
// the lock free after each.
func TestLockCodes(t *testing.T) {
	redis, dir := redistest.Start(t), t.TempDir()
	noShebang, noInterpreter := filepath.Join(dir, "no-shebang"), filepath.Join(dir, "no-interpreter")
	if err := errors.Join(os.WriteFile(noShebang, []byte("true\n"), 0o700), os.WriteFile(noInterpreter, []byte("#!/no/such/shell\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code    int
		words   string
		command []string
	}{
		{0, "", []string{"true"}},
		{3, "", []string{"sh", "-c", "exit 3"}},
		{75, "", []string{"sh", "-c", "exit 75"}},
		{137, "", []string{"sh", "-c", "kill -9 $$"}},
		{143, "", []string{"sh", "-c", "kill $$"}},
		{127, `command "no-such-command" was not found`, []string{"no-such-command"}},
		{127, "was not found: ", []string{filepath.Join(dir, "nothing")}},
		{126, "cannot be executed: permission denied", []string{"/etc/passwd"}},
		{126, "cannot be executed: ", []string{dir}},
		{126, "/no-shebang is no program of this machine, and no script with #! in its first line: exec format error", []string{noShebang}},
		{126, `/no-interpreter is there, and "/no/such/shell", which its first line names, is not: no such file`, []string{noInterpreter}},
	} {
		code, stdout, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", append([]string{"lock", "a", "--"}, tt.command...)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.words) || (stderr == "") != (tt.words == "") {
			t.Errorf("%v: exit %d, want %d; %q, %q", tt.command, code, tt.code, stdout, stderr)
		}
		cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitNotFound, `lock "a": nobody holds it`, "locks", "get", "a")
	}
}

// TestLockPassesOn wants the streams, the arguments and the environment to be the command's, and
// the two variables to be ours.
func TestLockPassesOn(t *testing.T) {
	redis := redistest.Start(t)
	env := append(cmdtest.RedisEnv(redis), "KEPT=1", "ESCAPEMENT_TOKEN=stale")
	script := `read -r line; echo "$line $1 $KEPT $ESCAPEMENT_LOCK"; echo "$ESCAPEMENT_TOKEN" >&2`
	code, stdout, first := cmdtest.Call(env, "in\n", "lock", "a b", "--", "sh", "-c", script, "-", "--wait")
	if code != 0 || stdout != "in --wait 1 a b\n" {
		t.Errorf("exit %d, %q, %q", code, stdout, first)
	}
	_, _, second := cmdtest.Call(env, "in\n", "lock", "a b", "--", "sh", "-c", script)
	one, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	two, err2 := strconv.ParseInt(strings.TrimSpace(second), 10, 64)
	if err1 != nil || err2 != nil || one >= two {
		t.Errorf("tokens %q and %q", first, second)
	}
}

// TestLockHeld wants exit 5 with who holds it, at once or after the wait, and no place kept in the
// line.
func TestLockHeld(t *testing.T) {
	t.Parallel()
	redis, file := redistest.Start(t), filepath.Join(t.TempDir(), "ran")
	lease := cmdtest.HoldLock(t, redis, "a", locking.Options{Holder: "billing on host-3"})
	cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitRefused, `lock "a" is held by billing on host-3, for 1`, "lock", "a", "--", "touch", file)
	began := time.Now()
	cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitRefused, "waited for 400ms in vain", "lock", "a", "--wait", "400ms", "--", "touch", file)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it waited only %s", took)
	}
	if l := cmdtest.Decode[ops.LockView](t, cmdtest.RedisEnv(redis), "locks", "get", "a"); l.Waiters != 0 || l.Owner != lease.Owner() {
		t.Errorf("got %+v, want nobody in line", l)
	}
	code := make(chan int, 1)
	go func() {
		got, _, _ := cmdtest.Call(cmdtest.RedisEnv(redis), "", "lock", "a", "--wait", "30s", "--", "touch", file)
		code <- got
	}()
	cmdtest.Eventually(t, "it waits in line", func() bool {
		return cmdtest.Decode[ops.LockView](t, cmdtest.RedisEnv(redis), "locks", "get", "a").Waiters == 1
	})
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the command was run beside the holder")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("exit %d", got)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestLockPermits wants two commands under a semaphore of two at once, exit 5 for a third, and exit
// 2 for another number.
func TestLockPermits(t *testing.T) {
	t.Parallel()
	redis, file := redistest.Start(t), filepath.Join(t.TempDir(), "ran")
	two := locking.Options{Permits: 2, Holder: "billing on host-3"}
	cmdtest.HoldLock(t, redis, "a", two)
	for range 2 { // the permit is free again after each
		if code, stdout, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", "lock", "a", "--permits", "2", "--", "sh", "-c", "echo $ESCAPEMENT_TOKEN"); code != 0 || len(stdout) < 17 {
			t.Errorf("exit %d, %q, %q", code, stdout, stderr)
		}
	}
	cmdtest.HoldLock(t, redis, "a", two)
	cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitRefused, `lock "a" is held by billing on host-3, for 1`, "lock", "a", "--permits", "2", "--", "touch", file)
	for _, other := range [][]string{nil, {"--permits", "1"}, {"--permits", "3"}} {
		cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitUsage, "somebody holds or waits for the name as a semaphore of 2 permits", append(append([]string{"lock", "a"}, other...), "--", "touch", file)...)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a command was run: %v", err)
	}
}

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
