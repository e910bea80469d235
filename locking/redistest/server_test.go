//go:build unix

package redistest

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func runID(t *testing.T, c *redis.Client) string {
	t.Helper()
	id, err := c.Eval(t.Context(), `return string.match(redis.call('INFO','server'),'run_id:(%w+)')`, nil).Text()
	if err != nil || len(id) != 40 {
		t.Fatalf("run_id %q, %v", id, err)
	}
	return id
}

func set(t *testing.T, c redis.Cmdable, key string) {
	t.Helper()
	if err := c.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantThere(t *testing.T, c redis.Cmdable, key string) {
	t.Helper()
	if got, err := c.Get(t.Context(), key).Result(); got != "v" {
		t.Errorf("key %s: %q, %v; want what was written before", key, got, err)
	}
}

// gone wants processes to have ended.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d after its test: %v; want it gone", pid, err)
		}
	}
}

func TestServer(t *testing.T) {
	var pid int
	t.Run("keeps its data", func(t *testing.T) {
		s := Start(t)
		keepsItsData(t, s)
		pauses(t, s)
		pid = s.Pid()
	})
	gone(t, pid)
}

func pauses(t *testing.T, s *Server) {
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Client(t).Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	wantThere(t, s.Client(t), "k")
}

func keepsItsData(t *testing.T, s *Server) {
	c := s.Client(t)
	first := runID(t, c)
	for _, end := range []func() error{s.Stop, s.Kill} {
		set(t, c, "k")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Pid() != 0 {
			t.Errorf("pid %d of a server that has ended", s.Pid())
		}
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Error("a server that has ended answers")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		wantThere(t, c, "k")
		if runID(t, c) == first {
			t.Error("the run_id is the old one after a restart")
		}
	}
}

// TestServerEndedByItself: a server that crashed, or was ended from outside, is not running, and
// its pid may be another process' by now.
func TestServerEndedByItself(t *testing.T) {
	s := Start(t)
	exited := s.exited
	if err := syscall.Kill(s.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-exited
	if s.Pid() != 0 {
		t.Errorf("pid %d of a server that has ended by itself", s.Pid())
	}
	for what, f := range map[string]func() error{"Pause": s.Pause, "Resume": s.Resume} {
		if err := f(); err == nil {
			t.Errorf("%s of a server that has ended by itself says nothing", what)
		}
	}
	for _, f := range []func() error{s.Stop, s.Kill, s.Restart} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartProcessSaysWhatIsWrong(t *testing.T) {
	if _, err := StartProcess(ProcessConfig{}); err == nil {
		t.Error("no directory: accepted")
	}
	if _, err := StartProcess(ProcessConfig{Dir: t.TempDir(), Args: []string{"--no-such-option", "1"}}); err == nil {
		t.Error("a server that ends at once: accepted")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := StartProcess(ProcessConfig{Dir: dir}); err == nil || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no redis-server: %v; want how to install it", err)
	}
}
