//go:build unix

package redistest

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestCluster moves a slot, and then freezes its master, which is replaced and follows its replica when it wakes.
func TestCluster(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		c := StartCluster(t)
		for _, s := range c.Servers() {
			pids = append(pids, s.Pid())
		}
		ctx, cancel := context.WithTimeout(t.Context(), standstill)
		defer cancel()
		slotMoves(ctx, t, c)
		masterIsReplaced(ctx, t, c)
		if err := c.Servers()[1].Pause(); err != nil { // a frozen one ends too
			t.Fatal(err)
		}
	})
	if len(pids) != 6 {
		t.Fatalf("%d processes; want 6", len(pids))
	}
	gone(t, pids...)
	if _, err := StartClusterProcess(ClusterConfig{}); err == nil {
		t.Error("no directory: accepted")
	}
}

// masterOf returns the master of key.
func masterOf(ctx context.Context, t *testing.T, c *Cluster, key string) *Server {
	t.Helper()
	master, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return master
}

func slotMoves(ctx context.Context, t *testing.T, c *Cluster) {
	client, keys := c.Client(t), []string{"{a}1", "{a}2"}
	for _, key := range keys {
		if err := client.Set(ctx, key, "v", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	from, to := masterOf(ctx, t, c, keys[0]), masterOf(ctx, t, c, "b")
	if from == to {
		t.Fatal("both keys are at one master: this proves nothing")
	}
	for _, to := range []*Server{to, to, from} {
		if err := c.MoveSlot(ctx, keys[0], to); err != nil {
			t.Fatal(err)
		}
		if now := masterOf(ctx, t, c, keys[0]); now != to {
			t.Errorf("the slot is at %s; want %s", now.Addr(), to.Addr())
		}
		for _, key := range keys {
			wantThere(t, client, key)
			if left := client.PTTL(ctx, key).Val(); left <= 0 || left > time.Minute {
				t.Errorf("%s lives for %s; want its old time to live", key, left)
			}
		}
	}
}

func masterIsReplaced(ctx context.Context, t *testing.T, c *Cluster) {
	set(t, c.Client(t), "b")
	frozen := masterOf(ctx, t, c, "b")
	direct := frozen.Client(t)
	if n, err := direct.Wait(ctx, 1, 5*time.Second).Result(); n != 1 {
		t.Fatalf("%d replicas, %v; want 1", n, err)
	}
	if err := frozen.Pause(); err != nil {
		t.Fatal(err)
	}
	now, err := c.Promoted(ctx, "b", frozen)
	if err != nil || now == frozen {
		t.Fatalf("the frozen master's successor: %v", err)
	}
	wantThere(t, now.Client(t), "b")
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Demoted(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	for err = direct.Set(ctx, "b", "stray", 0).Err(); err != nil && strings.HasPrefix(err.Error(), "CLUSTERDOWN "); { // until it knows its successor
		err = direct.Set(ctx, "b", "stray", 0).Err()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
		t.Errorf("a write to the old master: %v; want it sent elsewhere", err)
	}
}
