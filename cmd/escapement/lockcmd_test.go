package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// holding takes a lock in this process.
func holding(t *testing.T, redis *redistest.Server, name string, o locking.Options) *locking.Lease {
	t.Helper()
	locker := redislock.New(redis.Client(t), redislock.Config{})
	t.Cleanup(locker.Close)
	lease, err := locker.Acquire(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.Background()) }) // mostly it has ended
	return lease
}

func at(redis *redistest.Server) []string {
	return []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_AUTHOR=ann", "PATH=" + os.Getenv("PATH")}
}

// TestLockUsage wants exit 2 before anything is connected: that Redis is not there.
func TestLockUsage(t *testing.T) {
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + closedPort(t)}
	for _, tt := range []struct{ args, want string }{
		{"lock", "NAME is missing"},
		{"lock -- true", "NAME is missing"},
		{"lock a true", `write lock "a" -- "true" ...`},
		{"lock a sh -c true", `-- is missing, and without it the command's flags are taken for ours; write lock "a" -- "sh" ...`},
		{"lock --ttl 5s a ls -la /", `write lock "a" -- "ls" ...`},
		{"lock a sort -o sorted words", `write lock "a" -- "sort" ...`}, // a flag that we have, too
		{"lock a du -h /", `write lock "a" -- "du" ...`},                // our help is not the command's success
		{"lock a git --help", `write lock "a" -- "git" ...`},
		{"lock a --verbose -- true", "unknown flag: --verbose"},
		{"lock a", "-- and COMMAND are missing"},
		{"lock a --", "COMMAND is missing"},
		{"lock a b -- true", `unexpected argument "b"`},
		{"lock a --ttl 2s -- true", "--ttl is 2s, less than three times the margin 1s; use at least 3s"},
		{"lock a --ttl 0s -- true", "--ttl 0s is not more than 0"},
		{"lock a --ttl 800h -- true", "--ttl is 800h0m0s; use at most"},
		{"lock a --ttl 20 -- true", "did you mean 20s"},
		{"lock a --wait soon -- true", "--wait: "},
		{"lock a --wait=-1s -- true", "--wait is -1s, which is negative"},
		{"lock " + strings.Repeat("x", 600) + " -- true", "NAME has 600 bytes"},
		{"locks", "a command is missing: one of get, list, release"},
		{"locks list --limit -1", "it is negative"},
		{"locks list --limit 1.5", "it is no whole number"},
		{"locks list --limit 99999999999999999999", "it is no number of rows"},
		{"locks get", "NAME is missing"},
		{"locks get " + strings.Repeat("x", 600), "NAME has 600 bytes"},
		{"locks release a", "--token is missing"},
		{"locks release a --token x", "is not a token; locks get a shows it"},
		{"locks release a --token -4", "is not a token"},
	} {
		code, stdout, stderr := call(env, "", strings.Fields(tt.args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "\nusage: escapement lock") {
			t.Errorf("%.40s: exit %d, %q, %q", tt.args, code, stdout, stderr)
		}
		if runs := !strings.HasPrefix(tt.args, "locks"); ours.MatchString(lastLine(stderr)) != runs {
			t.Errorf("%.40s: whose code it is: %q", tt.args, stderr)
		}
	}
}

// TestLockUnreachable wants exit 6, what was tried, and never the password.
func TestLockUnreachable(t *testing.T) {
	addr := closedPort(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://u:hunter2@" + addr}
	file := filepath.Join(t.TempDir(), "ran")
	for _, args := range [][]string{
		{"lock", "a", "--", "touch", file}, {"lock", "a", "--wait", "300ms", "--", "touch", file},
		{"locks", "list"}, {"locks", "get", "a"}, {"locks", "release", "a", "--token", "1"}, {"locks", "release", "a", "--token", "1", "--force"},
	} {
		code, _, stderr := call(env, "", args...)
		if code != exitUnreachable || !strings.Contains(stderr, "cannot reach Redis at "+addr) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was run without the lock")
	}
}

// TestLockAtAReplica wants what can be done about a Redis that answers and takes no writes.
func TestLockAtAReplica(t *testing.T) {
	s, err := redistest.StartProcess(redistest.ProcessConfig{Dir: t.TempDir(), Args: []string{"--replicaof", "127.0.0.1", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Kill() }()
	says(t, at(s), exitUnreachable, "answers, and takes no writes now", "lock", "a", "--", "true")
	says(t, at(s), exitUnreachable, "if it is a replica, name its master", "lock", "a", "--", "true")
}

// TestLockCodes wants the command's own code, what a shell has for one that did not run, and the lock free after each.
func TestLockCodes(t *testing.T) {
	redis, dir := redistest.Start(t), t.TempDir()
	noShebang := filepath.Join(dir, "no-shebang")
	if err := os.WriteFile(noShebang, []byte("true\n"), 0o700); err != nil {
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
		{126, "cannot be executed: exec format error", []string{noShebang}},
	} {
		code, stdout, stderr := call(at(redis), "", append([]string{"lock", "a", "--"}, tt.command...)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.words) || (stderr == "") != (tt.words == "") {
			t.Errorf("%v: exit %d, want %d; %q, %q", tt.command, code, tt.code, stdout, stderr)
		}
		says(t, at(redis), exitNotFound, `lock "a": nobody holds it`, "locks", "get", "a")
	}
}

// TestLockPassesOn wants the streams, the arguments and the environment to be the command's, and the two variables to be ours.
func TestLockPassesOn(t *testing.T) {
	redis := redistest.Start(t)
	env := append(at(redis), "KEPT=1", "ESCAPEMENT_TOKEN=stale")
	script := `read -r line; echo "$line $1 $KEPT $ESCAPEMENT_LOCK"; echo "$ESCAPEMENT_TOKEN" >&2`
	code, stdout, first := call(env, "in\n", "lock", "a b", "--", "sh", "-c", script, "-", "--wait")
	if code != 0 || stdout != "in --wait 1 a b\n" {
		t.Errorf("exit %d, %q, %q", code, stdout, first)
	}
	_, _, second := call(env, "in\n", "lock", "a b", "--", "sh", "-c", script)
	one, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	two, err2 := strconv.ParseInt(strings.TrimSpace(second), 10, 64)
	if err1 != nil || err2 != nil || one >= two {
		t.Errorf("tokens %q and %q", first, second)
	}
}

// TestLockHeld wants exit 5 with who holds it, at once or after the wait, and no place kept in the line.
func TestLockHeld(t *testing.T) {
	redis, file := redistest.Start(t), filepath.Join(t.TempDir(), "ran")
	lease := holding(t, redis, "a", locking.Options{Holder: "billing on host-3"})
	says(t, at(redis), exitRefused, `lock "a" is held by billing on host-3, for 1`, "lock", "a", "--", "touch", file)
	began := time.Now()
	says(t, at(redis), exitRefused, "waited for 400ms in vain", "lock", "a", "--wait", "400ms", "--", "touch", file)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it waited only %s", took)
	}
	if l := decode[lockJSON](t, at(redis), "locks", "get", "a"); l.Waiters != 0 || l.Owner != lease.Owner() {
		t.Errorf("got %+v, want nobody in line", l)
	}
	code := make(chan int, 1)
	go func() {
		got, _, _ := call(at(redis), "", "lock", "a", "--wait", "30s", "--", "touch", file)
		code <- got
	}()
	eventually(t, "it waits in line", func() bool { return decode[lockJSON](t, at(redis), "locks", "get", "a").Waiters == 1 })
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the command was run beside the holder")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != exitDone {
		t.Errorf("exit %d", got)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestLockWords(t *testing.T) {
	if got := notHad("a", 0, &locking.HeldError{Owner: "o"}).Error(); strings.Contains(got, "0s more") {
		t.Errorf("nobody knows how long it is held: %s", got)
	}
	if got := notHad("a", 0, &locking.HeldError{Owner: "o", Until: time.Second}).Error(); !strings.Contains(got, "owner o, for 1s more unless it is renewed; ") {
		t.Errorf("got %s", got)
	}
	if got := brief(12345 * time.Millisecond); got != "12.3s" {
		t.Errorf("got %s", got)
	}
	if got := brief(-time.Second); got != "0s" {
		t.Errorf("got %s", got)
	}
	if got := who("", "o"); got != "owner o" {
		t.Errorf("got %s", got)
	}
	if o, err := lockOptions("1m", "2s", "3s"); err != nil || o.TTL != time.Minute || o.Wait != 2*time.Second || o.Delay != 3*time.Second || !strings.HasSuffix(o.Holder, ", pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("got %+v, %v", o, err)
	}
}
