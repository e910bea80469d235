//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// clusterFailover has a crew work while the master of its lock ends in some way.
func clusterFailover(t *testing.T, what string, end func(s *redistest.Server) error, after func(ctx context.Context, c *redistest.Cluster, s *redistest.Server) error) *crew {
	c := redistest.StartCluster(t)
	ctx := bound(t)
	w := musters(t, lockersOf(t, cluster(c), nil))
	w.since(time.Now(), 100)
	key := lockKeysOf(lockName)[0]
	master, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(master); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	if _, err := c.Promoted(ctx, key, master); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	resumed := w.since(ended, 100)
	t.Logf("had again %s after the end; the promotion was seen after %s", resumed.Sub(ended).Round(time.Millisecond), promoted.Sub(ended).Round(time.Millisecond))
	if err := after(ctx, c, master); err != nil {
		t.Fatal(err)
	}
	w.since(time.Now(), 100)
	w.report(what)
	return w
}

func TestClusterMasterKilled(t *testing.T) {
	t.Parallel()
	w := clusterFailover(t, "kill -9", (*redistest.Server).Kill,
		func(context.Context, *redistest.Cluster, *redistest.Server) error { return nil })
	w.inOrder()
}

func TestClusterMasterPaused(t *testing.T) {
	t.Parallel()
	clusterFailover(t, "SIGSTOP, SIGCONT", (*redistest.Server).Pause,
		func(ctx context.Context, c *redistest.Cluster, s *redistest.Server) error {
			return errors.Join(s.Resume(), c.Demoted(ctx, s))
		})
}

// A slot that moves loses nothing: there are never two holders, and tokens grow.
func TestClusterSlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	w := musters(t, lockersOf(t, cluster(c), nil))
	w.since(time.Now(), 100)
	masters := c.Servers()[:3]
	key := lockKeysOf(lockName)[0]
	at, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for i := range 6 {
		to := masters[(slices.Index(masters, at)+1+i%2)%3]
		if err := c.MoveSlot(ctx, key, to); err != nil {
			t.Fatal(err)
		}
		at = to
		moved := time.Now()
		slowest = max(slowest, w.since(moved, 50).Sub(moved))
	}
	t.Logf("had again %s after a move at most", slowest.Round(time.Millisecond))
	w.report("6 moves")
	w.inOrder()
	if w.overlaps > 0 || w.sink.refused > 0 {
		t.Errorf("%d overlaps, %d stale writes; want none: nothing was lost", w.overlaps, w.sink.refused)
	}
}

// A slot with many keys is on its way for long. Meanwhile its locks are kept.
func TestClusterSlotIsOnItsWay(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	l := newLocker(t, cluster(c), nil)
	lease, err := l.Acquire(ctx, lockName, locking.Options{TTL: crewTTL})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	key := lockKeysOf(lockName)[0]
	from, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	to := c.Servers()[slices.IndexFunc(c.Servers(), func(s *redistest.Server) bool { return s != from })]
	if err := c.OpenSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.Context().Done():
		t.Fatalf("the lease was lost while its slot was on its way: %v", context.Cause(lease.Context()))
	case <-time.After(3 * crewTTL):
	}
	if err := c.MoveSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestClusterConfirmed: a grant is confirmed by the replicas of its own master, also when the slot has moved to another one.
func TestClusterConfirmed(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	client, _ := cluster(c).client(t)
	l := redislock.New(client, redislock.Config{Namespace: "kit", Confirm: 1})
	defer l.Close()
	take := func() error {
		lease, err := l.Acquire(ctx, lockName, locking.Options{Wait: 5 * time.Second})
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	key := lockKeysOf(lockName)[0]
	from, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	masters := c.Servers()[:3]
	to := masters[(slices.Index(masters, from)+1)%3]
	if err := c.MoveSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
	if err := take(); err != nil {
		t.Errorf("after its slot has moved: %v", err)
	}
	replica, err := c.Replica(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Try(ctx, lockName, locking.Options{}); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("without a replica: %v; want that it is not confirmed", err)
	}
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	await(t, 10*time.Second, "a replica confirms again", func() bool { return take() == nil })
}

// TestClusterConfirmedFollows: the first call after a slot has moved finds its new master, however often the client has looked.
func TestClusterConfirmedFollows(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	client, _ := cluster(c).client(t)
	d := redislock.NewDriver(client, redislock.Config{Namespace: "kit", Confirm: 1})
	masters := c.Servers()[:3]
	key := lockKeysOf(lockName)[0]
	at, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		owner := fmt.Sprint("o", i)
		if _, err := d.Acquire(ctx, locking.Request{Name: lockName, Owner: owner, TTL: time.Minute}); err != nil {
			t.Fatalf("after %d moves: %v", i, err)
		}
		if err := d.Release(ctx, lockName, owner); err != nil {
			t.Fatal(err)
		}
		at = masters[(slices.Index(masters, at)+1)%3]
		if err := c.MoveSlot(ctx, key, at); err != nil {
			t.Fatal(err)
		}
	}
}
