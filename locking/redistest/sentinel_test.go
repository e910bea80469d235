//go:build unix

package redistest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// writes waits until a client writes again. No call may take longer than its context.
func writes(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	const call = 300 * time.Millisecond
	for begun := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), call)
		err := c.Set(ctx, key, "v", 0).Err()
		<-ctx.Done() // not before: a call that is refused at once is not repeated in haste
		cancel()
		if err == nil {
			return
		}
		if time.Since(begun) > standstill { // an election that finds no majority is repeated after six
			t.Fatalf("nothing can be written after %s: %v", time.Since(begun), err)
		}
	}
}

// TestSentinels freezes the master, which is replaced and follows the new one when it wakes.
func TestSentinels(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		s := StartSentinels(t)
		for _, server := range s.Servers() {
			pids = append(pids, server.Pid())
		}
		ctx, cancel := context.WithTimeout(t.Context(), standstill)
		defer cancel()
		c := s.Client(t)
		writes(t, c, "before")
		frozen, err := s.Master()
		if err != nil {
			t.Fatal(err)
		}
		if err := frozen.Pause(); err != nil {
			t.Fatal(err)
		}
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
			wantThere(t, direct, key)
		}
		if err := s.Servers()[1].Pause(); err != nil { // a frozen one ends too
			t.Fatal(err)
		}
	})
	gone(t, pids...)
	if _, err := StartSentinelsProcess(SentinelsConfig{}); err == nil {
		t.Error("no directory: accepted")
	}
}
