package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

type neverRenew struct{}

func (neverRenew) Renew(context.Context, []locking.Renewal) ([]locking.RenewAnswer, error) {
	return nil, locking.ErrUnreachable
}

// Where the program stood still between the grant and the start, the lock may have another holder:
// no command begins beside it.
func TestLockLostBeforeTheCommand(t *testing.T) {
	k := locking.NewKeeper(neverRenew{}, locking.KeeperConfig{Margin: lockstore.Margin})
	lease := k.Hold(t.Context(), locking.Grant{Name: "a", Owner: "o", Token: 1, TTL: 3 * time.Second, Asked: time.Now().Add(-time.Minute)})
	file, said := filepath.Join(t.TempDir(), "ran"), make(chan string, 1)
	u := &underLock{
		lease: lease, child: exec.Command("touch", file), signals: make(chan os.Signal),
		report: func(f string, args ...any) { said <- fmt.Sprintf(f, args...) },
	}
	if _, err := u.run(); err != nil || !u.lost {
		t.Errorf("lost %t, error %v", u.lost, err)
	}
	if words := <-said; !strings.HasPrefix(words, "the command was not run: lease lost") {
		t.Error(words)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was run")
	}
}

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
