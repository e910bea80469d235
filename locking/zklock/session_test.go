//go:build unix

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

// TestRenewalAcrossTheEnd sends renewals so that their answers come after the lease would have ended. A lease that was renewed
// is held.
func TestRenewalAcrossTheEnd(t *testing.T) {
	d, n, root := driver(t)
	c, _ := connect(t, []string{theServer(t).addr()})
	other := zklock.NewDriver(c, zklock.Config{Root: root})
	const ttl, delay = time.Second, 100 * time.Millisecond
	grants := make([]locking.Grant, 8)
	for i := range grants {
		grants[i] = mustAcquire(t, d, locking.Request{Name: fmt.Sprint(i), Owner: fmt.Sprint("o", i), TTL: ttl})
	}
	n.Delay(delay)
	defer n.Heal()
	var all sync.WaitGroup
	var mu sync.Mutex
	renewed := 0
	for i, g := range grants {
		all.Go(func() {
			<-time.After(time.Until(g.Asked.Add(ttl - delay/2 - delay*time.Duration(i)/4))) // each round trip takes delay
			sent := time.Now()
			got, err := d.Renew(t.Context(), []locking.Renewal{{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: ttl}})
			if err != nil || got[0] != locking.Renewed {
				return // too late
			}
			mu.Lock()
			renewed++
			mu.Unlock()
			<-time.After(delay) // for the end to be carried out
			if o, err := other.Owner(t.Context(), g.Name); err != nil || o.Token != g.Token && time.Since(sent) < ttl {
				t.Errorf("renewed %d, and the store says %+v, %v", i, o, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d were renewed in time", renewed, len(grants))
	if renewed == 0 {
		t.Error("no renewal was in time")
	}
}

// TestCloseKeepsLocks closes a client whose lock was not released. Its holder may be at work, so the lock stays held.
func TestCloseKeepsLocks(t *testing.T) {
	d, _, root := driver(t)
	c, _ := connect(t, []string{theServer(t).addr()})
	holder := zklock.NewDriver(c, zklock.Config{Root: root})
	mustAcquire(t, holder, request("holder", 2*time.Second))
	closed := time.Now()
	c.Close()
	if _, err := d.Acquire(t.Context(), request("other", time.Second)); !errors.Is(err, locking.ErrHeld) {
		t.Errorf("after the holder's client was closed: %v; want held", err)
	}
	if err := holder.Release(t.Context(), "a", "holder"); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("release with a closed client: %v", err)
	}
	await(t, "the lock is free", func() bool {
		_, err := d.Acquire(t.Context(), request("another", time.Second))
		return err == nil
	})
	if took := time.Since(closed); took < 2*time.Second {
		t.Errorf("the lock was free %s after its holder was closed", took)
	}
}

// TestSessionExpires cuts a client off for longer than its session. The client goes on with a new
// session, and nothing is left of the old one.
func TestSessionExpires(t *testing.T) {
	server := theServer(t).addr()
	root := fmt.Sprint("/tests/", roots.Add(1))
	l, n := locker(t, root, server)
	other, _ := locker(t, root, server)
	for _, l := range []*locking.Locker{l, other} {
		if err := l.Do(t.Context(), "warm", locking.Options{TTL: 1500 * time.Millisecond}, func(context.Context, *locking.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	for range 3 {
		lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 1500 * time.Millisecond, Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		n.Cut()
		b, err := other.Acquire(t.Context(), "a", locking.Options{TTL: 1500 * time.Millisecond, Wait: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if lease.Valid() || b.Token() <= lease.Token() {
			t.Errorf("the lease that was cut off is valid: %t; token %d after %d", lease.Valid(), b.Token(), lease.Token())
		}
		n.Heal()
		if err := b.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := l.Do(t.Context(), "a", locking.Options{TTL: 1500 * time.Millisecond, Wait: 10 * time.Second}, func(context.Context, *locking.Lease) error { return nil }); err != nil {
		t.Errorf("after three sessions: %v", err)
	}
	await(t, "the goroutines of the sessions have ended", func() bool { return runtime.NumGoroutine() <= before+5 })
}
