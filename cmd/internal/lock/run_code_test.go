package lock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// The last line of lock for a code that is not the command's.
const (
	notRun  = "the command was not run"
	wasLost = "the lock was lost"
)

func oursLine(code int, why string) string {
	return fmt.Sprintf("escapement: exit code %d is ours: %s", code, why)
}

// ours is the pattern for scripts, in the last line of stderr.
var ours = regexp.MustCompile(`^escapement: exit code [0-9]+ is ours: `)

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// TestLockTellsOurCodes has lock end with each code of its own before the command is run.
// TestLockLost and TestLockSignals have the other codes.
func TestLockTellsOurCodes(t *testing.T) {
	redis, dir := redistest.Start(t), t.TempDir()
	held := cmdtest.HoldLock(t, redis, "held", locking.Options{})
	defer func() { _ = held.Release(t.Context()) }()
	broken := testkit.Write(t, "namespace: [\n")
	client := redis.Client(t)
	if err := client.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read").Err(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		args []string
	}{
		{command.ExitFailed, []string{"--redis", "redis://reader:pw@" + redis.Addr(), "a", "--", "true"}},
		{command.ExitConfig, []string{"--config", broken, "a", "--", "true"}},
		{command.ExitConfig, []string{"--redis", "http://there", "a", "--", "true"}},
		{command.ExitRefused, []string{"held", "--", "true"}},
		{command.ExitRefused, []string{"held", "--wait", "10ms", "--", "true"}},
		{command.ExitUnreachable, []string{"--redis", "redis://" + cmdtest.ClosedPort(t), "a", "--", "true"}},
		{exitNotRunnable, []string{"a", "--", dir}},
		{exitNotRunnable, []string{"a", "--", "/etc/passwd"}},
		{exitNoCommand, []string{"a", "--", "no-such-command"}},
		{exitNoCommand, []string{"a", "--", filepath.Join(dir, "nothing")}},
	} {
		code, stdout, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", append([]string{"lock"}, tt.args...)...)
		if want := oursLine(tt.code, notRun); code != tt.code || lastLine(stderr) != want || !ours.MatchString(want) || stdout != "" {
			t.Errorf("%v: exit %d, %q\n%swant %d and the last line %q", tt.args, code, stdout, stderr, tt.code, want)
		}
	}
}

// TestLockIsSilentOfTheCommandsCodes has commands end with the codes that lock has itself.
func TestLockIsSilentOfTheCommandsCodes(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, code := range []int{0, command.ExitFailed, command.ExitUsage, command.ExitConfig, command.ExitRefused, command.ExitUnreachable, exitLost, exitNotRunnable, exitNoCommand, 143} {
		got, _, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", "lock", "a", "--", "sh", "-c", fmt.Sprintf("echo escapement: last words >&2; exit %d", code))
		if got != code || stderr != "escapement: last words\n" {
			t.Errorf("exit %d, want %d, and nothing of ours in %q", got, code, stderr)
		}
	}
	// There is a message, and the code is still the command's.
	dir := t.TempDir()
	p := locked(t, redis, true, "a", "--ttl", "30s", "--", "sh", "-c", fmt.Sprintf("echo in; while [ ! -e %s/go ]; do sleep 0.01; done; exit 5", dir))
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Exits(5)
	last := lastLine(p.Stderr.Text())
	if ours.MatchString(last) || !strings.HasPrefix(last, `escapement: lock "a": release at redis `) || !strings.HasSuffix(last, "; the lock could not be given back, and is free in 30s at most") || strings.Count(last, `"a"`) != 1 {
		t.Errorf("got %q", last)
	}
}

// TestLockPassword expects exit 3, where the password is missing or wrong, and the remedy; and
// never the password.
func TestLockPassword(t *testing.T) {
	redis := redistest.Start(t)
	if err := redis.Client(t).ConfigSet(t.Context(), "requirepass", "correct-horse").Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("redis://:battery@"+redis.Addr()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const missing, wrong = "wants a password, and none is given (NOAUTH): write redis://:PASSWORD@HOST", "refuses the password, or the user, that is given there (WRONGPASS): write redis://:PASSWORD@HOST"
	for _, tt := range []struct{ env, where, want string }{
		{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_REDIS_URL: ", missing},
		{"ESCAPEMENT_REDIS_URL=redis://battery@" + redis.Addr(), "ESCAPEMENT_REDIS_URL: ", missing}, // the colon was forgotten
		{"ESCAPEMENT_REDIS_URL=redis://:battery@" + redis.Addr(), "ESCAPEMENT_REDIS_URL: ", wrong},
		{"ESCAPEMENT_REDIS_URL=redis://staple:battery@" + redis.Addr(), "ESCAPEMENT_REDIS_URL: ", wrong},
		{"ESCAPEMENT_REDIS_URL_FILE=" + file, "ESCAPEMENT_REDIS_URL_FILE: ", wrong},
	} {
		for _, args := range [][]string{
			{"lock", "a", "--", "echo", "ran"}, {"locks", "list"}, {"locks", "get", "a"},
			{"locks", "release", "a", "--token", "1"}, {"locks", "release", "a", "--token", "1", "--force"},
		} {
			code, stdout, stderr := cmdtest.Call([]string{tt.env, "PATH=" + os.Getenv("PATH")}, "", args...)
			want := tt.where + "Redis at " + redis.Addr() + " " + tt.want
			if code != command.ExitConfig || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "; ESCAPEMENT_REDIS_URL_FILE names a file") {
				t.Errorf("%s %v: exit %d, %q\n%swant %s", tt.env, args, code, stdout, stderr, want)
			}
			for _, secret := range []string{"battery", "staple", "correct-horse"} {
				if strings.Contains(stderr, secret) {
					t.Errorf("%v says %s: %s", args, secret, stderr)
				}
			}
		}
	}
	right := []string{"ESCAPEMENT_REDIS_URL=redis://:correct-horse@" + redis.Addr(), "PATH=" + os.Getenv("PATH")}
	cmdtest.Expect(t, right, command.ExitDone, "ran", "lock", "a", "--", "echo", "ran")
	// A word in a name is not Redis' answer.
	cmdtest.Expect(t, []string{"ESCAPEMENT_REDIS_URL=redis://" + cmdtest.ClosedPort(t), "PATH=" + os.Getenv("PATH")}, command.ExitUnreachable, "cannot reach Redis", "lock", "unauthenticated", "--", "true")
}

// TestLockOutlivesItsReader loses the lock while its stderr is a pipe that is full or has no
// reader: the command is still ended before the lock lapses.
func TestLockOutlivesItsReader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hangs", "is gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, pid := redistest.Start(t), filepath.Join(t.TempDir(), "pid")
			read, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := cmdtest.Process(t, cmdtest.RedisEnv(redis), "lock", "a", "--ttl", "3s", "--", "sh", "-c",
				fmt.Sprintf(`trap "" TERM; exec 2>/dev/null; echo $$ >%[1]s.new; mv %[1]s.new %[1]s; while :; do sleep 0.01; done`, pid))
			cmd.Stderr = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }() // it has ended, unless the test fails
			var child int
			cmdtest.Eventually(t, "the command begins", func() bool {
				written := cmdtest.Lines(t, pid)
				if len(written) == 1 {
					child, err = strconv.Atoi(written[0])
				}
				return child != 0
			})
			defer func() {
				if !cmdtest.Ended(child) {
					_ = syscall.Kill(child, syscall.SIGKILL)
				}
			}()
			if name == "hangs" {
				cmdtest.FillPipe(t, w)
			} else {
				_ = read.Close()
			}
			_ = w.Close()
			if err := redis.Kill(); err != nil {
				t.Fatal(err)
			}
			cmdtest.Eventually(t, "the command is ended", func() bool { return cmdtest.Ended(child) })
			var status *exec.ExitError
			if err := cmd.Wait(); name == "is gone" && (!errors.As(err, &status) || status.ExitCode() != exitLost) {
				t.Errorf("it ended with %v, want %d", err, exitLost)
			}
		})
	}
}

// TestLockOutlivesThreads ends threads of the program. If the thread that started a command ends,
// Linux ends the command too. Mostly that thread waits for the command; so there are many commands,
// on busy processors.
func TestLockOutlivesThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const crowd = 24
	lease := cmdtest.HoldLock(t, redistest.Start(t), "a", locking.Options{})
	codes, all := make(chan int, crowd), []chan os.Signal{}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for range crowd {
		child := exec.Command("sh", "-c", "echo; exec sleep 1000")
		child.Stdout = w
		signals := make(chan os.Signal, 1)
		all = append(all, signals)
		u := &underLock{lease: lease, child: child, signals: signals, report: func(string, ...any) {}}
		go func() {
			code, err := u.run()
			if err != nil {
				t.Error(err)
			}
			codes <- code
		}()
		endThreads(4)
	}
	if _, err := io.ReadFull(r, make([]byte, crowd)); err != nil {
		t.Fatal(err)
	}
	endThreads(200)
	<-time.After(200 * time.Millisecond) // a signal that is on its way has come
	if n := len(codes); n > 0 {
		t.Errorf("%d of %d commands ended when threads did, the first with %d", n, crowd, <-codes)
		codes <- 0
	}
	for _, signals := range all {
		signals <- syscall.SIGINT
	}
	for range all {
		if code := <-codes; code != 130 && !t.Failed() {
			t.Errorf("exit %d", code)
		}
	}
}

// endThreads has as many threads end.
func endThreads(n int) {
	var gone sync.WaitGroup
	for range n {
		gone.Go(func() {
			runtime.LockOSThread() // a goroutine that ends so takes its thread along
			time.Sleep(time.Millisecond)
		})
	}
	gone.Wait()
}
