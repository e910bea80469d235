//go:build unix

package redistest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// masterOf returns the master of key.
func masterOf(ctx context.Context, t *testing.T, c *Cluster, key string) *Server {
	t.Helper()
	master, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return master
}

func TestCluster(t *testing.T) {
	c := StartCluster(t)
	client := c.Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	masters := make(map[*Server]bool)
	for _, key := range []string{"a", "b", "c"} { // one key for each master
		if err := client.Set(ctx, key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		masters[masterOf(ctx, t, c, key)] = true
	}
	if len(masters) != 3 || len(c.Servers()) != 6 {
		t.Fatalf("%d masters of %d servers; want 3 of 6", len(masters), len(c.Servers()))
	}
	wantReplicated(ctx, t, c, "a")

	begun := time.Now()
	killed := masterOf(ctx, t, c, "a")
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	now, err := c.Promoted(ctx, "a", killed)
	if err != nil || now == killed || now != masterOf(ctx, t, c, "a") {
		t.Fatalf("the killed master's successor: %v", err)
	}
	t.Logf("promoted %s after SIGKILL", time.Since(begun).Round(time.Millisecond))
	if got, err := now.Client(t).Get(ctx, "a").Result(); got != "v" {
		t.Errorf("after a failover: %q, %v; want what was written before", got, err)
	}
	if err := killed.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.Demoted(ctx, killed); err != nil {
		t.Fatal(err)
	}
}

// A frozen master is replaced too, and follows its replica when it wakes.
func TestClusterPausedMaster(t *testing.T) {
	c := StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Client(t).Set(ctx, "b", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	wantReplicated(ctx, t, c, "b")
	frozen := masterOf(ctx, t, c, "b")
	if err := frozen.Pause(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if now, err := c.Promoted(ctx, "b", frozen); err != nil || now == frozen {
		t.Fatalf("the frozen master's successor: %v", err)
	}
	t.Logf("promoted %s after SIGSTOP", time.Since(begun).Round(time.Millisecond))
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Demoted(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Client(t).Set(ctx, "b", "stray", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
		t.Errorf("a write to the old master: %v; want it sent elsewhere", err)
	}
}

// wantReplicated waits until the replica of key's master has caught up.
func wantReplicated(ctx context.Context, t *testing.T, c *Cluster, key string) {
	t.Helper()
	if n, err := masterOf(ctx, t, c, key).Client(t).Wait(ctx, 1, 5*time.Second).Result(); n != 1 {
		t.Fatalf("%d replicas, %v; want 1", n, err)
	}
}

func TestClusterMoveSlot(t *testing.T) {
	c := StartCluster(t)
	client := c.Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, key := range []string{"{a}1", "{a}2"} {
		if err := client.Set(ctx, key, "v", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	from, to := masterOf(ctx, t, c, "{a}1"), masterOf(ctx, t, c, "b")
	if from == to {
		t.Fatal("both keys are at one master: this proves nothing")
	}
	for _, move := range []struct{ from, to *Server }{{from, to}, {to, to}, {to, from}} {
		if err := c.MoveSlot(ctx, "{a}1", move.to); err != nil {
			t.Fatal(err)
		}
		if now := masterOf(ctx, t, c, "{a}1"); now != move.to {
			t.Errorf("the slot is at %s; want %s", now.Addr(), move.to.Addr())
		}
		for _, key := range []string{"{a}1", "{a}2"} {
			if got, err := client.Get(ctx, key).Result(); got != "v" {
				t.Errorf("%s after its slot has moved: %q, %v", key, got, err)
			}
			if left := client.PTTL(ctx, key).Val(); left <= 0 || left > time.Minute {
				t.Errorf("%s lives for %s; want its old time to live", key, left)
			}
		}
	}
}

// TestWordsOfAClusterThatDoesNotGather: whoever reads them must not look for sentinels that are not there.
func TestWordsOfAClusterThatDoesNotGather(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Cluster{servers: []*Server{{}}}
	if err := c.Demoted(ctx, c.servers[0]); err == nil || strings.Contains(err.Error(), "sentinel") {
		t.Errorf("a server of a Cluster that never becomes a replica: %v", err)
	}
}

func TestClusterEndsWithItsTest(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		c := StartCluster(t)
		for _, s := range c.Servers() {
			pids = append(pids, s.Pid())
		}
		if err := c.Servers()[1].Pause(); err != nil { // a frozen one ends too
			t.Fatal(err)
		}
	})
	if len(pids) != 6 {
		t.Fatalf("%d processes; want 6", len(pids))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d after its test: %v; want it gone", pid, err)
		}
	}
	if _, err := StartClusterProcess(ClusterConfig{}); err == nil {
		t.Error("no directory: accepted")
	}
}

func TestNodeServes(t *testing.T) {
	n := node{slots: []string{"5", "10-20", "[30->-abc]", "[40-<-def]"}}
	for slot, want := range map[int]bool{5: true, 6: false, 9: false, 10: true, 15: true, 20: true, 21: false, 30: false, 40: false} {
		if n.serves(slot) != want {
			t.Errorf("serves(%d) is %t", slot, !want)
		}
	}
}
