//go:build unix

package redistest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// writes waits until a client writes again, and wants that within 10 s. No call may take longer
// than its context.
func writes(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	const call = 300 * time.Millisecond
	begun := time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), call)
		asked := time.Now()
		err := c.Set(ctx, key, "v", 0).Err()
		<-ctx.Done() // not before: a call that is refused at once is not repeated in haste
		if took := time.Since(asked); took > call+2*time.Second {
			t.Errorf("a call with %s to live took %s", call, took)
		}
		cancel()
		if err == nil {
			t.Logf("%s written after %s", key, time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > 30*time.Second { // an election that finds no majority is repeated after six
			t.Fatalf("nothing can be written after %s: %v", time.Since(begun), err)
		}
	}
}

// change does something to the master and returns it when another one has taken its place.
func change(t *testing.T, s *Sentinels, do func(*Server) error) *Server {
	t.Helper()
	old, err := s.Master()
	if err != nil {
		t.Fatal(err)
	}
	if err := do(old); err != nil {
		t.Fatal(err)
	}
	return old
}

func TestSentinels(t *testing.T) {
	s := StartSentinels(t)
	c := s.Client(t)
	if len(s.Addrs()) != 3 || len(s.Servers()) != 3 || s.MasterName() == "" {
		t.Errorf("sentinels %v, %d servers, master %q", s.Addrs(), len(s.Servers()), s.MasterName())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	writes(t, c, "before")

	frozen := change(t, s, (*Server).Pause)
	writes(t, c, "after SIGSTOP")
	if now, err := s.Promoted(ctx, frozen); err != nil || now == frozen {
		t.Fatalf("the frozen master's successor: %v", err)
	}
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := s.Demoted(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	direct := frozen.Client(t)
	if err := direct.Set(ctx, "stray", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
		t.Errorf("a write to the old master: %v; want it refused by a replica", err)
	}
	for _, key := range []string{"before", "after SIGSTOP"} {
		if got, err := direct.Get(ctx, key).Result(); got != "v" {
			t.Errorf("the old master holds %s = %q, %v; want what the new one has", key, got, err)
		}
	}

	killed := change(t, s, (*Server).Kill)
	writes(t, c, "after SIGKILL")
	if now, err := s.Promoted(ctx, killed); err != nil || now == killed {
		t.Fatalf("the killed master's successor: %v", err)
	}
	if got, err := c.Get(ctx, "before").Result(); got != "v" {
		t.Errorf("after two failovers: %q, %v; want what was written before them", got, err)
	}
}

func TestSentinelsEndWithTheirTest(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		s := StartSentinels(t)
		for _, server := range s.Servers() {
			pids = append(pids, server.Pid())
		}
		if err := s.Servers()[1].Pause(); err != nil { // a frozen one ends too
			t.Fatal(err)
		}
	})
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d after its test: %v; want it gone", pid, err)
		}
	}
	if _, err := StartSentinelsProcess(SentinelsConfig{}); err == nil {
		t.Error("no directory: accepted")
	}
}
