package lock

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// locked starts a process of escapement lock, and waits for the command's first word when there is
// to be one.
func locked(t *testing.T, redis *redistest.Server, begun bool, args ...string) *cmdtest.Running {
	t.Helper()
	p := cmdtest.Start(t, cmdtest.RedisEnv(redis)[:1], append([]string{"lock"}, args...)...)
	if begun {
		p.Await(p.Stdout, "the command begins", func(lines []string) bool { return len(lines) > 0 })
	}
	return p
}

// child is the command's process id, if that is the first thing it wrote.
func child(p *cmdtest.Running) int {
	p.T.Helper()
	lines, _, _ := p.Stdout.Seen()
	pid, err := strconv.Atoi(lines[0])
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() { // it may outlive the program when the test fails
		if !cmdtest.Ended(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// left is how long Redis keeps a lock from now on without a renewal.
func left(t *testing.T, client *redis.Client, name string) time.Duration {
	t.Helper()
	d, err := client.PTTL(t.Context(), "{escapement:lock:"+name+"}").Result()
	if err != nil || d <= 0 {
		t.Fatal(d, err)
	}
	return d
}

// TestLockContention lets processes count in a file, which goes wrong without a lock.
func TestLockContention(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Start(t), t.TempDir()
	const crowd = 4
	script := fmt.Sprintf(`cd %s; mkdir inside || exit 9; echo $ESCAPEMENT_TOKEN >>tokens; sleep 0.2; rmdir inside`, dir)
	var all []*cmdtest.Running
	for range crowd {
		all = append(all, locked(t, redis, false, "a", "--wait", "30s", "--", "sh", "-c", script))
	}
	for _, p := range all {
		p.Exits(command.ExitDone)
	}
	tokens := cmdtest.Lines(t, filepath.Join(dir, "tokens"))
	for i, token := range tokens {
		if i > 0 && (len(token) != len(tokens[i-1]) || token <= tokens[i-1]) {
			t.Errorf("tokens %v do not grow", tokens)
		}
	}
	if len(tokens) != crowd {
		t.Errorf("%d commands ran: %v", len(tokens), tokens)
	}

	holder := locked(t, redis, true, "a", "--", "sh", "-c", "echo in; exec sleep 1000")
	second := locked(t, redis, false, "a", "--", "touch", filepath.Join(dir, "second"))
	second.Exits(command.ExitRefused)
	if who := fmt.Sprintf("pid %d, for ", holder.Cmd.Process.Pid); !strings.Contains(second.Stderr.Text(), who) {
		t.Errorf("it does not say who: %s", second.Stderr.Text())
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("the command ran beside the holder")
	}
}

// TestLockLost freezes Redis: a command that will not end is dead before Redis could have given its
// lock to anybody else.
func TestLockLost(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a command that ends when told": `trap 'echo told; sleep 0.1; printf "in the middle of a line" >&2; exit 0' TERM; echo $$; while :; do sleep 0.01; done`,
		"one that does not":             `trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			client := redis.Client(t)
			p := locked(t, redis, true, "a", "--ttl", "3s", "--", "sh", "-c", line)
			pid := child(p)
			kept := left(t, client, "a") // a renewal from here to the pause would only make it longer
			free := time.Now().Add(kept)
			if err := redis.Pause(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = redis.Resume() }() // else it would be killed all the same
			cmdtest.Eventually(t, "the command is ended", func() bool { return cmdtest.Ended(pid) })
			if early := time.Until(free); early <= 0 {
				t.Errorf("the command lived until %s after Redis gave its lock away", -early)
			} else {
				t.Logf("the command was dead %s before Redis gave its lock away", early)
			}
			p.Exits(exitLost) // while Redis stands still: the code does not wait for the lost lock to be given back
			if !strings.Contains(p.Stdout.Text(), "told") || !strings.Contains(p.Stderr.Text(), "the command is ended, within 500ms") || lastLine(p.Stderr.Text()) != oursLine(exitLost, wasLost) {
				t.Errorf("%s\n%s", p.Stdout.Text(), p.Stderr.Text())
			}
		})
	}
}

// TestLockRevoked ends a command by locks release; its group dies with it, and the log has a line
// in the configured form.
func TestLockRevoked(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var out, words cmdtest.Buffer
	code := make(chan int, 1)
	go func() {
		args := []string{"lock", "a", "--ttl", "3s", "--", "sh", "-c", "sleep 1000 & echo $!; wait"}
		code <- cmdtest.NewApp().Run(args, strings.NewReader(""), &out, &words, cmdtest.RedisEnv(redis))
	}()
	cmdtest.Eventually(t, "the command begins", func() bool { return strings.HasSuffix(out.String(), "\n") })
	l := cmdtest.Decode[ops.LockView](t, cmdtest.RedisEnv(redis), "locks", "get", "a")
	if who := fmt.Sprintf(", pid %d", os.Getpid()); !strings.HasPrefix(l.Holder, "escapement lock on ") || !strings.HasSuffix(l.Holder, who) {
		t.Errorf("held by %q", l.Holder)
	}
	cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitDone, `lock "a" is free`, "locks", "release", "a", "--token", fmt.Sprint(l.Token))
	if got := <-code; got != exitLost || !strings.Contains(words.String(), `"level":"error"`) || !strings.Contains(words.String(), "lease lost") {
		t.Errorf("exit %d\n%s", got, words.String())
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(out.String())); err != nil || !cmdtest.Ended(pid) {
		t.Errorf("a process of the command's group goes on: %v", err)
	}
}

// TestLockFrozen stops the program itself for longer than the lock lasts: the command and all its
// processes are ended meanwhile, also where it ignores SIGTERM.
func TestLockFrozen(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	client := redis.Client(t)
	p := locked(t, redis, true, "a", "--ttl", "3s", "--", "sh", "-c", `trap "" TERM; echo $$; sleep 1000 & while :; do sleep 0.01; done`)
	pid := child(p)
	free := time.Now().Add(left(t, client, "a")) // or later: a renewal from here to the stop makes it longer
	p.Signal(syscall.SIGSTOP)
	cmdtest.Eventually(t, "the command is ended while the program stands still", func() bool { return cmdtest.Ended(pid) })
	t.Logf("the command was dead %s before Redis gave its lock away", time.Until(free)) // the margin is for this; a machine without a moment to spare may use it up
	cmdtest.Eventually(t, "the lock lapses", func() bool { return client.Exists(t.Context(), "{escapement:lock:a}").Val() == 0 })
	p.Signal(syscall.SIGCONT)
	p.Exits(exitLost)
	if lastLine(p.Stderr.Text()) != oursLine(exitLost, wasLost) {
		t.Error(p.Stderr.Text())
	}
}

// TestLockFrozenEndsWhatIsLeft stops the program while its command ends and the lock lapses: the
// program notices both at once, and ends the command's remaining processes whichever it handles
// first.
func TestLockFrozenEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	client := redis.Client(t)
	var all []*cmdtest.Running
	var left []int
	for i := range 8 {
		script := []string{"", `trap "" TERM; `}[i%2] + `sleep 1000 >/dev/null 2>&1 & echo $!; sleep 1`
		p := locked(t, redis, true, fmt.Sprint("a", i), "--ttl", "3s", "--", "sh", "-c", script)
		p.Signal(syscall.SIGSTOP)
		all, left = append(all, p), append(left, child(p))
	}
	cmdtest.Eventually(t, "the locks lapse", func() bool {
		n, err := client.Exists(t.Context(), "{escapement:lock:a0}", "{escapement:lock:a7}").Result()
		return err == nil && n == 0
	})
	for i, p := range all {
		p.Signal(syscall.SIGCONT)
		p.Exits(exitLost)
		if !cmdtest.Ended(left[i]) {
			t.Errorf("%d: what the command left behind goes on without the lock: %s", i, p.Stderr.Text())
		}
	}
}

// TestLockSignals wants each signal to reach the command, and the command's answer to be ours.
func TestLockSignals(t *testing.T) {
	heard := make(chan os.Signal, 1) // what nohup ignores, all children would ignore, and a shell could not trap
	signal.Notify(heard, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(heard)
	redis := redistest.Start(t)
	for _, tt := range []struct {
		signal syscall.Signal
		script string
		code   int
	}{
		{syscall.SIGINT, `trap 'echo caught; exit 9' INT; echo in; while :; do sleep 0.01; done`, 9},
		{syscall.SIGTERM, `trap 'echo caught; exit 10' TERM; echo in; while :; do sleep 0.01; done`, 10},
		{syscall.SIGHUP, `trap 'echo caught; exit 0' HUP; echo in; while :; do sleep 0.01; done`, 0},
		{syscall.SIGQUIT, `trap 'echo caught; exit 11' QUIT; echo in; while :; do sleep 0.01; done`, 11},
		{syscall.SIGTERM, `echo in; exec sleep 1000`, 143},
		{syscall.SIGINT, `echo in; exec sleep 1000`, 130},
		{syscall.SIGQUIT, `ulimit -c 0; echo in; exec sleep 1000`, 131},
		{syscall.SIGHUP, `echo in; sleep 1000`, 129}, // the whole group gets it
	} {
		p := locked(t, redis, true, "a", "--", "sh", "-c", tt.script)
		p.Signal(tt.signal)
		p.Exits(tt.code)
		if strings.Contains(tt.script, "caught") && !strings.Contains(p.Stdout.Text(), "caught") {
			t.Errorf("%s: not caught", tt.signal)
		}
		cmdtest.Expect(t, cmdtest.RedisEnv(redis), command.ExitNotFound, "nobody holds it", "locks", "get", "a")
	}

	holder := locked(t, redis, true, "a", "--", "sh", "-c", "echo in; exec sleep 1000")
	waiter := locked(t, redis, false, "a", "--wait", "30s", "--", "echo", "ran")
	cmdtest.Eventually(t, "it waits", func() bool {
		return cmdtest.Decode[ops.LockView](t, cmdtest.RedisEnv(redis), "locks", "get", "a").Waiters == 1
	})
	waiter.Signal(syscall.SIGTERM)
	waiter.Exits(143)
	if lastLine(waiter.Stderr.Text()) != oursLine(143, notRun) || waiter.Stdout.Text() != "" || !strings.Contains(waiter.Stderr.Text(), "the wait ended by terminated; the command was not run") {
		t.Errorf("%s\n%s", waiter.Stdout.Text(), waiter.Stderr.Text())
	}
	if l := cmdtest.Decode[ops.LockView](t, cmdtest.RedisEnv(redis), "locks", "get", "a"); l.Waiters != 0 {
		t.Errorf("got %+v, want nobody in line", l)
	}
	holder.Signal(syscall.SIGTERM)
	holder.Exits(143)
}

// TestLockLeavesNothing ends what a command leaves behind before the lock is given back, and the
// command when we are killed.
func TestLockLeavesNothing(t *testing.T) {
	redis := redistest.Start(t)
	p := locked(t, redis, true, "a", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 4")
	p.Exits(4)
	if !cmdtest.Ended(child(p)) {
		t.Error("what the command left behind goes on without the lock")
	}
	p = locked(t, redis, true, "b", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; wait")
	started := child(p)
	p.Signal(syscall.SIGKILL)
	cmdtest.Eventually(t, "what the command started is ended", func() bool { return cmdtest.Ended(started) })
}
