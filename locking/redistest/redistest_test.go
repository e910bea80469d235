//go:build unix

package redistest

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
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

func set(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	if err := c.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantThere(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	if got, err := c.Get(t.Context(), key).Result(); got != "v" {
		t.Errorf("key %s: %q, %v; want what was written before", key, got, err)
	}
}

func TestServerKeepsItsData(t *testing.T) {
	s := Start(t)
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
		if err := s.Pause(); err == nil {
			t.Error("Pause of a server that has ended says nothing")
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

// TestServerEndedByItself: one that crashed, or that somebody else ended, is not running, and its pid may be another process' by now.
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

func TestServerPause(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	set(t, c, "k")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	wantThere(t, c, "k")
}

func TestServerEndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) { pid = Start(t).Pid() })
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after its test: %v; want it gone", pid, err)
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

func TestEmbeddedInABubble(t *testing.T) {
	for range 2 { // a second bubble in one process has its own traps
		bubble(t, func(t *testing.T, e *Embedded) {
			c := e.Client()
			defer c.Close()
			if err := c.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			<-time.After(59 * time.Minute)
			wantThere(t, c, "k")
			<-time.After(time.Minute + time.Millisecond)
			if n := c.Exists(t.Context(), "k").Val(); n != 0 {
				t.Error("the key outlived its time to live")
			}
			if now := c.Time(t.Context()).Val(); time.Until(now).Abs() > time.Millisecond {
				t.Errorf("TIME is %s in a bubble where it is %s", now, time.Now())
			}
		})
	}
}

func TestEmbeddedRestart(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		c := e.Client()
		defer c.Close()
		set(t, c, "k")
		first := runID(t, c)
		if first != e.RunID() {
			t.Errorf("a script sees run_id %s; want %s", first, e.RunID())
		}
		e.Stop()
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Error("a stopped server answers")
		}
		if err := e.Restart(); err != nil {
			t.Fatal(err)
		}
		wantThere(t, c, "k")
		if runID(t, c) == first {
			t.Error("the run_id is the old one after a restart")
		}
		e.SetRunID("0123456789012345678901234567890123456789")
		if runID(t, c) != e.RunID() {
			t.Error("SetRunID changed nothing")
		}
		if got, err := c.BLPop(t.Context(), time.Second, "none").Result(); !errors.Is(err, redis.Nil) {
			t.Errorf("a blocking command after a restart: %v, %v", got, err)
		}
	})
}

// A pipe without room deadlocks here: the client still sends while the server
// already answers, and neither reads.
func TestEmbeddedLongPipeline(t *testing.T) {
	bubbleNet(t, func(t *testing.T, _ *Net, c *redis.Client) {
		pipe := c.Pipeline()
		for range 5000 {
			pipe.Echo(t.Context(), "some forty bytes there and as many back")
		}
		if cmds, err := pipe.Exec(t.Context()); err != nil || len(cmds) != 5000 {
			t.Errorf("%d replies, %v", len(cmds), err)
		}
	})
}

// bubble gives f an embedded server in a bubble.
func bubble(t *testing.T, f func(t *testing.T, e *Embedded)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		f(t, e)
	})
}

// bubbleNet gives f a client of an embedded server over a network of its own.
func bubbleNet(t *testing.T, f func(t *testing.T, n *Net, c *redis.Client)) {
	bubble(t, func(t *testing.T, e *Embedded) {
		n := new(Net)
		c := n.Client(e.Options())
		defer c.Close()
		f(t, n, c)
	})
}

func TestNetCut(t *testing.T) {
	bubbleNet(t, func(t *testing.T, n *Net, c *redis.Client) {
		set(t, c, "k")
		n.Cut()
		n.Cut()
		for range 3 { // on an old connection, then on new ones
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := c.Set(ctx, "k", "other", 0).Err()
			cancel()
			if got := time.Since(start); err == nil || got != time.Second {
				t.Errorf("over a cut network: %v after %s; want silence until the deadline", err, got)
			}
		}
		n.Heal()
		wantThere(t, c, "k")
	})
}

func TestNetLoseReplies(t *testing.T) {
	bubbleNet(t, func(t *testing.T, n *Net, c *redis.Client) {
		set(t, c, "k")
		n.LoseReplies(1, "INCR")
		wantThere(t, c, "k") // another request is left alone
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Incr(ctx, "n").Err(); err == nil {
			t.Error("the reply arrived")
		}
		if got := c.Get(t.Context(), "n").Val(); got != "1" || n.Losing() != 0 {
			t.Errorf("n is %q, still losing %d; want the request carried out once", got, n.Losing())
		}
	})
}
