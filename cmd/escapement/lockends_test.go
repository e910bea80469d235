//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// afterGrant does something behind the first script, which grants a lock.
type afterGrant struct{ do func(context.Context) }

func (afterGrant) DialHook(next redis.DialHook) redis.DialHook { return next }

func (afterGrant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a afterGrant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			a.do(ctx)
		}
		return err
	}
}

// TestLockLostAndNotStarted: a command that cannot be started was not run, whatever became of the lock meanwhile.
func TestLockLostAndNotStarted(t *testing.T) {
	server := redistest.Start(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	client, other := server.Client(t), server.Client(t)
	client.AddHook(afterGrant{func(ctx context.Context) { other.FlushAll(ctx) }})
	var words heard
	a := &app{env: map[string]string{}, stdin: strings.NewReader(""), stdout: &words, stderr: &words}
	err := a.lock(&loaded{Config: defaults()}, client, "a", []string{script}, locking.Options{TTL: short})
	if code := exitCode(err); code != exitNoCommand || !strings.Contains(words.String(), "was not found") {
		t.Errorf("exit %d, want %d\n%s", code, exitNoCommand, words.String())
	}
	if !strings.Contains(words.String(), `lock "a" was lost before it could be given back`) {
		t.Errorf("nothing says that it was lost:\n%s", words.String())
	}
}

// keeps is a store in which nothing is given back.
type keeps struct{ *redislock.Driver }

func (keeps) Release(context.Context, string, string) error { return locking.ErrUnreachable }

// TestLocksReleaseForceIsNotGivenBack: what was taken away and could not be given back is not released yet.
func TestLocksReleaseForceIsNotGivenBack(t *testing.T) {
	p := plant(t)
	in, err := scheduler.NewInspector(p.client, "escapement")
	if err != nil {
		t.Fatal(err)
	}
	driver := redislock.NewDriver(p.client, redislock.Config{})
	for _, tt := range []struct {
		driver   locking.Driver
		released string
	}{{driver, `"released": true`}, {keeps{driver}, `"released": false`}} {
		lease := holding(t, p.server, "a", locking.Options{TTL: short})
		locker := locking.New(tt.driver, locking.Config{Margin: lockMargin})
		var out, words strings.Builder
		a := &app{stdout: &out, stderr: &words, flags: globalFlags{output: "json"}}
		err := a.locksRelease(lockTool{tool{t.Context(), in, []string{"a"}}, driver, locker}, lease.Token(), true)
		if err != nil || !strings.Contains(out.String(), tt.released) {
			t.Errorf("%v, %s%swant %s", err, out.String(), words.String(), tt.released)
		}
		locker.Close()
	}
}

// TestLocksGetForeign: of a key without an end nobody knows when others can have the lock; that is not now.
func TestLocksGetForeign(t *testing.T) {
	p := plant(t)
	if err := p.client.Set(t.Context(), "{escapement:lock:a}", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.wants(exitDone, "left     -\n", "", "locks", "get", "a")
	_, table, _ := call(p.env, "", "locks", "list")
	if row := strings.Fields(lastLine(table)); len(row) < 4 || row[0] != "a" || row[3] != "-" {
		t.Errorf("got %q", row)
	}
}
