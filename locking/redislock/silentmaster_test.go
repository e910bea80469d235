//go:build unix

package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestSilentMaster has a master of a Cluster fall silent. Locks at the others are renewed and given back as if nothing was.
func TestSilentMaster(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), redistest.StartCluster(t)
	var road redistest.Net
	defer road.Heal()
	away, err := c.Master(ctx, lockKeysOf("a-0")[0])
	if err != nil {
		t.Fatal(err)
	}
	locker := redislock.New(c.ClientOver(t, func(addr string) *redistest.Net {
		if addr == away.Addr() {
			return &road
		}
		return nil
	}), redislock.Config{Namespace: "kit", CallTimeout: 2 * time.Second})
	defer locker.Close()
	var there, elsewhere []string
	for i := 0; len(there) < 40 || len(elsewhere) < 40; i++ {
		name := fmt.Sprint("a-", i)
		at, err := c.Master(ctx, lockKeysOf(name)[0])
		if err != nil {
			t.Fatal(err)
		}
		if at == away {
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

	lost, kept := acquire(there[0], 6*time.Second), acquire(elsewhere[0], 6*time.Second)
	road.Cut() // before any renewal: no master knows the script of renewals yet
	select {
	case <-kept.Context().Done():
		t.Errorf("the lease at a master that answers ended: %v", context.Cause(kept.Context()))
	case <-time.After(9 * time.Second):
	}
	if lost.Valid() {
		t.Error("the lease at the silent master is valid for longer than its ttl")
	}
	road.Heal()

	for i := range 40 {
		acquire(there[i], time.Minute)
		if i > 0 {
			acquire(elsewhere[i], time.Minute)
		}
	}
	road.Cut()
	short, cancel := context.WithTimeout(ctx, 1900*time.Millisecond) // less than one call at the silent one may take
	defer cancel()
	if err := locker.ReleaseAll(short); err == nil {
		t.Error("everything was given back, at a silent master too")
	}
	other := redislock.New(c.Client(t), redislock.Config{Namespace: "kit"})
	defer other.Close()
	for _, name := range elsewhere[:40] {
		if o, err := other.Owner(ctx, name); err != nil || o.Held() {
			t.Errorf("%s is held by %+v, %v; want it given back", name, o, err)
		}
	}
}
