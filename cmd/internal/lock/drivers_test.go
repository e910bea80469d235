package lock

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// masters starts independent servers, and returns their URLs with commas between.
func independent(t *testing.T, n int) string {
	t.Helper()
	var urls []string
	for range n {
		urls = append(urls, "redis://"+redistest.Start(t).Addr())
	}
	return strings.Join(urls, ",")
}

// TestLockOverSeveral: a command under a lock of three servers, which vote after locks bootstrap.
func TestLockOverSeveral(t *testing.T) {
	t.Parallel()
	servers := independent(t, 3)
	where := []string{"--driver", "redlock", "--servers", servers}
	lock := func(args ...string) (int, string, string) {
		return cmdtest.Call(nil, "", append(append([]string{"lock", "a"}, where...), append([]string{"--"}, args...)...)...)
	}
	// answered repeats a command while servers of a slow machine do not answer it in time.
	answered := func(line func() (int, string, string)) (code int, out, words string) {
		for until := time.Now().Add(3 * time.Minute); ; {
			code, out, words = line()
			if slow := strings.Contains(words, "no answer within") || strings.Contains(words, "i/o timeout"); !slow || time.Now().After(until) {
				return code, out, words
			}
		}
	}
	if code, _, words := lock("true"); code != command.ExitUnreachable || !strings.Contains(words, "escapement locks bootstrap") {
		t.Fatalf("new servers: exit %d, %s", code, words)
	}
	code, _, words := answered(func() (int, string, string) {
		return cmdtest.Call(nil, "", append([]string{"locks", "bootstrap"}, where...)...)
	})
	if code != command.ExitDone || !strings.Contains(words, "the 3 servers vote") {
		t.Fatalf("exit %d, %s", code, words)
	}
	code, out, words := answered(func() (int, string, string) {
		return lock("sh", "-c", `echo $ESCAPEMENT_LOCK $ESCAPEMENT_TOKEN; exit 3`)
	})
	if code != 3 || !strings.HasPrefix(out, "a 1") || words != "" {
		t.Errorf("exit %d, %q, %s", code, out, words)
	}
	file := filepath.Join(t.TempDir(), "nested")
	env := append(os.Environ(), "ESCAPEMENT_LOCKS_DRIVER=redlock", "ESCAPEMENT_LOCKS_SERVERS="+servers)
	if code, _, words := answered(func() (int, string, string) { return cmdtest.Call(env, "", "lock", "b", "--", "touch", file) }); code != command.ExitDone {
		t.Errorf("by the environment: exit %d, %s", code, words)
	}
}

// TestLockElsewhereBesideGuards: the store of one command may differ from the store of the jobs'
// guards; the message does not name `locks get`, which reads another store.
func TestLockElsewhereBesideGuards(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "jobs: [{name: books, schedule: '@every 1s', guard: redis, exec: {command: [\"true\"]}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := independent(t, 3)
	where := []string{"--config", file, "--driver", "redlock", "--servers", servers}
	if code, _, words := cmdtest.Call(cmdtest.RedisEnv(server), "", append([]string{"locks", "bootstrap"}, where...)...); code != command.ExitDone {
		t.Fatalf("exit %d, %s", code, words)
	}
	locker, end, err := lockstore.Drivers[lockstore.Redlock](lockstore.Config{Servers: strings.Split(servers, ","), Namespace: "escapement", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	lease, err := locker.Acquire(t.Context(), "a", locking.Options{Holder: "the test"})
	if err != nil {
		t.Fatal(err)
	}
	code, _, words := cmdtest.Call(cmdtest.RedisEnv(server), "", append(append([]string{"lock", "a"}, where...), "--", "true")...)
	if code != command.ExitRefused || !strings.Contains(words, "held by the test") || strings.Contains(words, "locks get") {
		t.Errorf("exit %d, %s", code, words)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLocksRefused: what cannot be a store is refused with the place, and without a password.
func TestLocksRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ driver, servers, want string }{
		{"zookeeper", "a:2181", "--driver: zookeeper is not in this program, which has redis, redlock; escapement-full has it"},
		{"redlock", "", "locks.servers: is empty, and the driver is redlock"},
		{"redlock", "redis://:secret@a:6379", "masters are 1; use an odd number, at least 3"},
		{"redlock", "redis://:secret@a,nonsense,redis://c", "--servers: the URL of server 2 has no scheme"},
		{"redis", "redis://:secret@a,redis://b", "--servers: are 2, and redis has one URL"},
		{"paper", "a", `--driver: "paper" is not one of redis, redlock, zookeeper, etcd, postgres`},
	} {
		args := []string{"lock", "a", "--driver", c.driver}
		if c.servers != "" {
			args = append(args, "--servers", c.servers)
		}
		code, _, words := cmdtest.Call(nil, "", append(args, "--", "true")...)
		if code != command.ExitConfig || strings.Contains(words, "secret") || !strings.Contains(words, c.want) {
			t.Errorf("%+v: exit %d, %s", c, code, words)
		}
	}
}
