//go:build unix

package etcdlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// ask requests lock a with a place in its queue.
func ask(t *testing.T, d *etcdlock.Driver, owner string) error {
	t.Helper()
	_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: owner, TTL: 15 * time.Second, Queue: true})
	return err
}

// wantPlace wants an error with the lock's holder, and the caller's place.
func wantPlace(t *testing.T, what string, err error, owner string, place int) {
	t.Helper()
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Owner != owner || held.Place != place {
		t.Fatalf("%s: %v; want held by %s, and place %d", what, err, owner, place)
	}
}

// TestQueueOrder: a waiter is notified because the waiter before it gave up. It does not overtake
// the first waiter, who has sent no request yet, though the lock is free.
func TestQueueOrder(t *testing.T) {
	s := startServers(t, 1)[0]
	d, _ := driver(t, newPrefix(), s)
	if err := ask(t, d, "holder"); err != nil {
		t.Fatal(err)
	}
	notified, stop := d.Listen("a", "third")
	defer stop()
	for i, owner := range []string{"first", "second", "third"} {
		wantPlace(t, owner, ask(t, d, owner), "holder", i+1)
	}
	for _, owner := range []string{"second", "holder"} {
		if err := d.Release(t.Context(), "a", owner); err != nil && !errors.Is(err, locking.ErrLost) {
			t.Fatal(err)
		}
	}
	select {
	case <-notified:
	case <-time.After(10 * time.Second):
		t.Fatal("the third waiter was not notified")
	}
	wantPlace(t, "third", ask(t, d, "third"), "first", 2)
	if o, err := d.Owner(t.Context(), "a"); err != nil || o.Held() || o.Waiters != 2 {
		t.Errorf("while the lock is kept for the first waiter: %+v, %v", o, err)
	}
	if err := ask(t, d, "first"); err != nil {
		t.Errorf("the first waiter: %v", err)
	}
}
