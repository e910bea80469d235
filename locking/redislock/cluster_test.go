//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestCluster runs all tests that need a Cluster on one: the kit, notifications, lists, unreachable masters, moving slots, and at last
// replaced masters.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	s := cluster(c)
	t.Run("conformance", func(t *testing.T) { conforms(t, s) })
	for _, sub := range []struct {
		name string
		run  func(t *testing.T, c *redistest.Cluster)
	}{
		{"notifications", clusterNotifications},
		{"list", clusterList},
		{"unreachable master", unreachableMaster},
		{"confirmed", clusterConfirmed},
		{"a slot being moved", slotBeingMoved},
		{"slots move under load", slotsMove},
		{"master paused", masterPaused},
		{"master killed", masterKilled},
	} {
		t.Run(sub.name, func(t *testing.T) {
			s.delete(t, "")
			sub.run(t, c)
		})
	}
}

// masterOf is the master of a lock.
func masterOf(ctx context.Context, tb testing.TB, c *redistest.Cluster, lock string) *redistest.Server {
	tb.Helper()
	s, err := c.Master(ctx, lockKeys(lock)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// another is a master that the lock is not at.
func another(ctx context.Context, tb testing.TB, c *redistest.Cluster, lock string) *redistest.Server {
	tb.Helper()
	masters := c.Servers()[:3]
	return masters[(slices.Index(masters, masterOf(ctx, tb, c, lock))+1)%3]
}

// cutOff returns a client that reaches one master of the Cluster over a network of its own.
func cutOff(t *testing.T, c *redistest.Cluster, master *redistest.Server) (*redistest.Net, *redislock.Driver, func(hook func())) {
	n := new(redistest.Net)
	client := c.ClientOver(t, func(addr string) *redistest.Net {
		if addr == master.Addr() {
			return n
		}
		return nil
	})
	t.Cleanup(n.Heal)
	return n, redislock.NewDriver(client, redislock.Config{Namespace: "kit"}), func(hook func()) { client.AddHook(before(hook)) }
}

// clusterList lists the locks of all masters, odd names included. With one master unreachable, List
// returns the other masters' locks and an error; with a slot being moved, all locks but the slot's.
func clusterList(t *testing.T, c *redistest.Cluster) {
	ctx := bound(t)
	gone := masterOf(ctx, t, c, lockName)
	away, d, atScript := cutOff(t, c, gone)
	const many = 30
	manyLocks(t, d, many)
	for _, name := range oddNames {
		if _, err := d.Acquire(ctx, locking.Request{Name: name, Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	all, more, err := d.List(ctx, "", 100)
	if len(all) != many+len(oddNames) || more || err != nil {
		t.Errorf("%d locks of %d, more %t, %v", len(all), many+len(oddNames), more, err)
	}
	elsewhere := 0
	for _, o := range all {
		if masterOf(ctx, t, c, o.Name) != gone {
			elsewhere++
		}
	}
	list := func(when string, want int) {
		t.Helper()
		locks, _, err := d.List(ctx, "", 100)
		if !errors.Is(err, locking.ErrUnreachable) || len(locks) != want {
			t.Errorf("%s: %d locks, %v; want the %d at the others", when, len(locks), err, want)
		}
	}
	away.Cut()
	list("a master is away", elsewhere)
	away.Heal()
	atScript(away.Cut) // when all names are known
	list("a master goes away", elsewhere)

	first := lockName + "0"
	if err := c.OpenSlot(ctx, lockKeys(first)[0], another(ctx, t, c, first)); err != nil {
		t.Fatal(err)
	}
	moving := redislock.NewDriver(c.Client(t), redislock.Config{Namespace: "kit"})
	found, _, err := moving.List(ctx, "", 0)
	if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), strconv.Quote(first)) || len(found) != len(all)-1 {
		t.Errorf("%d locks, %v; want all but one of %d, and that %s cannot be read now", len(found), err, len(all), first)
	}
	if err := c.MoveSlot(ctx, lockKeys(first)[0], another(ctx, t, c, first)); err != nil {
		t.Fatal(err)
	}
}

// While a master is unreachable, locks at the other masters are renewed and released.
func unreachableMaster(t *testing.T, c *redistest.Cluster) {
	ctx := bound(t)
	away := masterOf(ctx, t, c, "a-0")
	network, d, _ := cutOff(t, c, away)
	locker := locking.New(d, locking.Config{CallTimeout: time.Second})
	defer locker.Close()
	const each = 20
	var there, elsewhere []string
	for i := 0; len(there) < each || len(elsewhere) < each; i++ {
		name := fmt.Sprint("a-", i)
		if masterOf(ctx, t, c, name) == away {
			there = append(there, name)
		} else {
			elsewhere = append(elsewhere, name)
		}
	}
	acquire := func(name string, ttl time.Duration) *locking.Lease {
		t.Helper()
		lease, err := locker.Acquire(ctx, name, locking.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	const ttl = 3 * time.Second
	lost, kept := acquire(there[0], ttl), acquire(elsewhere[0], ttl)
	network.Cut() // before any renewal: no master has the script of renewals yet
	select {
	case <-kept.Context().Done():
		t.Errorf("the lease at a master that answers ended: %v", context.Cause(kept.Context()))
	case <-time.After(3 * ttl / 2):
	}
	if lost.Valid() {
		t.Error("the lease at the unreachable master is valid for longer than its ttl")
	}
	network.Heal()

	for i := range each {
		acquire(there[i], time.Minute)
		if i > 0 {
			acquire(elsewhere[i], time.Minute)
		}
	}
	network.Cut()
	short, cancel := context.WithTimeout(ctx, 900*time.Millisecond) // less than one call at the unreachable one may take
	defer cancel()
	if err := locker.ReleaseAll(short); err == nil {
		t.Error("everything was released, at an unreachable master too")
	}
	other := cluster(c).locker(t, redislock.Config{})
	for _, name := range elsewhere[:each] {
		if o, err := other.Owner(ctx, name); err != nil || o.Held() {
			t.Errorf("%s is held by %+v, %v; want it released", name, o, err)
		}
	}
}

// clusterConfirmed: a grant is confirmed by the replicas of its own master, also by the first call after its slot has moved.
func clusterConfirmed(t *testing.T, c *redistest.Cluster) {
	ctx, s := bound(t), cluster(c)
	s.confirm = 1
	l := s.locker(t, redislock.Config{})
	take := func() error {
		lease, err := l.Acquire(ctx, lockName, locking.Options{Wait: 5 * time.Second})
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	client, _ := s.client(t)
	d := redislock.NewDriver(client, redislock.Config{Namespace: "kit", Confirm: 1}) // one WAIT each
	var to *redistest.Server
	for i := range 4 {
		if err := take(); err != nil {
			t.Errorf("after %d moves: %v", i, err)
		}
		owner := fmt.Sprint("o", i)
		if _, err := d.Acquire(ctx, locking.Request{Name: lockName, Owner: owner, TTL: time.Minute}); err != nil {
			t.Fatalf("the first call after %d moves: %v", i, err)
		}
		if err := d.Release(ctx, lockName, owner); err != nil {
			t.Fatal(err)
		}
		to = another(ctx, t, c, lockName)
		if err := c.MoveSlot(ctx, lockKeys(lockName)[0], to); err != nil {
			t.Fatal(err)
		}
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
	await(t, "a replica confirms again", func() bool { return take() == nil })
}

// slotOnItsWay: a slot with many keys is on its way for long. Meanwhile its locks are kept.
func slotBeingMoved(t *testing.T, c *redistest.Cluster) {
	ctx := bound(t)
	l := crewLocker(t, cluster(c))
	lease, err := l.Acquire(ctx, lockName, locking.Options{TTL: crewTTL})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	key, to := lockKeys(lockName)[0], another(ctx, t, c, lockName)
	if err := c.OpenSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.Context().Done():
		t.Fatalf("the lease was lost while its slot was on its way: %v", context.Cause(lease.Context()))
	case <-time.After(2 * crewTTL):
	}
	if err := c.MoveSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
	give(t, lease)
}

// slotsMove: a slot that moves loses nothing. There are never two holders, and tokens grow.
func slotsMove(t *testing.T, c *redistest.Cluster) {
	ctx := bound(t)
	w := musters(t, cluster(c))
	w.since(time.Now(), 100)
	for range 3 {
		if err := c.MoveSlot(ctx, lockKeys(lockName)[0], another(ctx, t, c, lockName)); err != nil {
			t.Fatal(err)
		}
		w.since(time.Now(), 50)
	}
	w.report("3 moves")
	w.inOrder()
	if w.overlaps > 0 || w.sink.refused > 0 {
		t.Errorf("%d overlaps, %d stale writes; want none: nothing was lost", w.overlaps, w.sink.refused)
	}
}

func clusterReplaces(t *testing.T, c *redistest.Cluster, end, after func(s *redistest.Server) error) *crew {
	master := masterOf(t.Context(), t, c, lockName)
	return replaced(t, cluster(c), master, end, after,
		func(ctx context.Context) error { _, err := c.Promoted(ctx, lockKeys(lockName)[0], master); return err },
		func(ctx context.Context) error { return c.Demoted(ctx, master) })
}

func masterPaused(t *testing.T, c *redistest.Cluster) {
	clusterReplaces(t, c, (*redistest.Server).Pause, (*redistest.Server).Resume)
}

func masterKilled(t *testing.T, c *redistest.Cluster) {
	clusterReplaces(t, c, (*redistest.Server).Kill, (*redistest.Server).Restart).inOrder()
}
