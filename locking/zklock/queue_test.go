//go:build unix

package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// TestNoHerd: each node has one watcher at most, so a release notifies one waiter.
func TestNoHerd(t *testing.T) {
	const waiters = 20
	z := startServer(t, fast)
	first, _ := locker(t, "/herd", z.addr())
	lease, err := first.Acquire(t.Context(), "a", locking.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range waiters {
		l, _ := locker(t, "/herd", z.addr())
		all.Go(func() {
			lease, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
			if err == nil {
				err = lease.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	await(t, "all waiters watch", func() bool { return z.metric(t, "zk_watch_count") == waiters })
	paths, watchers := 0, 0
	for line := range strings.Lines(z.ask("wchp")) { // a path, and below the sessions that watch it
		switch {
		case strings.HasPrefix(line, "/herd/"):
			paths++
		case strings.HasPrefix(line, "\t"):
			watchers++
		}
	}
	if paths != waiters || watchers != waiters {
		t.Errorf("%d waiters watch %d nodes in %d sessions; want each its own", waiters, paths, watchers)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// TestPlaceWithItsReplyLost loses the reply to a waiter's first node. It gets no second one.
func TestPlaceWithItsReplyLost(t *testing.T) {
	d, _, root := driver(t)
	mustAcquire(t, d, request("holder", 20*time.Second))
	server := theServer(t).addr()
	l, n := locker(t, root, server)
	n.LoseReplies(1, "/wait-")
	got := make(chan error, 1)
	go func() { // ends with its wait
		lease, err := l.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
		if err == nil {
			err = lease.Release(t.Context())
		}
		got <- err
	}()
	waiters := func() int {
		o, err := d.Owner(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return o.Waiters
	}
	await(t, "the reply is lost and the waiter has its place", func() bool { return n.Losing() == 0 && waiters() > 0 })
	for start := time.Now(); time.Since(start) < 2*time.Second; <-time.After(50 * time.Millisecond) { // it polls after a second
		if n := waiters(); n != 1 {
			t.Fatalf("%d places for one waiter", n)
		}
	}
	if err := d.Release(t.Context(), "a", "holder"); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestForgottenPlace: a waiter that sends no further request loses its place, though its process
// lives.
func TestForgottenPlace(t *testing.T) {
	d, _, _ := driver(t)
	mustAcquire(t, d, request("holder", 20*time.Second))
	r := request("waiter", 20*time.Second)
	r.Queue = true
	var held *locking.HeldError
	if _, err := d.Acquire(t.Context(), r); !errors.As(err, &held) || held.Place != 1 {
		t.Fatalf("%v; want the first place", err)
	}
	start := time.Now()
	await(t, "the place is free", func() bool {
		o, err := d.Owner(t.Context(), "a")
		return err == nil && o.Waiters == 0
	})
	if took := time.Since(start); took < locking.QueueTimeout-time.Second {
		t.Errorf("the place was free after %s", took)
	}
}

// TestLateGrant delays the replies after the request for the grant was sent: the lease has ended before its answer comes.
func TestLateGrant(t *testing.T) {
	d, n, root := driver(t)
	const ttl = 1500 * time.Millisecond
	mustAcquire(t, d, request("warm", ttl))
	if err := d.Release(t.Context(), "a", "warm"); err != nil {
		t.Fatal(err)
	}
	n.LoseReply() // of the transaction
	l := locking.New(d, locking.Config{Margin: margin, CallTimeout: 300 * time.Millisecond})
	defer l.Close()
	other, _ := locker(t, root, theServer(t).addr())
	got := make(chan error, 1)
	go func() { // ends with its two calls
		lease, err := l.Try(t.Context(), "a", locking.Options{TTL: ttl, Fixed: true})
		if err == nil {
			err = fmt.Errorf("granted token %d", lease.Token())
			lease.Close()
		}
		got <- err
	}()
	await(t, "the grant is in the store, and its reply lost", func() bool {
		o, err := other.Owner(t.Context(), "a")
		if err == nil && o.Held() {
			n.Cut() // no further request of the holder arrives
		}
		return err == nil && o.Held()
	})
	if err := <-got; !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("the grant whose reply was lost: %v; want ErrUnreachable", err)
	}
	start := time.Now()
	lease, err := other.Acquire(t.Context(), "a", locking.Options{Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the lock was free after %s", time.Since(start))
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	n.Heal()
}
