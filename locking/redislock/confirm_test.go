//go:build unix

package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestConfirm: a grant counts when the wanted number of replicas has it, and is given back when
// fewer have it. WAIT on a connection that has written nothing would be answered with all replicas.
func TestConfirm(t *testing.T) {
	m, replicas := redistest.StartReplicas(t, 2)
	master := m.Client(t)
	master.ScriptFlush(t.Context())
	l, both := redislock.New(master, redislock.Config{Confirm: 1}), redislock.NewDriver(master, redislock.Config{Confirm: 2})
	defer l.Close()
	take := func() error {
		lease, err := l.Acquire(t.Context(), "a", locking.Options{})
		if err != nil {
			return err
		}
		return lease.Release(t.Context())
	}
	if err := take(); err != nil {
		t.Fatalf("with both replicas: %v", err)
	}
	if err := replicas[0].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := take(); err != nil {
		t.Fatalf("with one of two replicas: %v", err)
	}
	if err := replicas[1].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := take(); !errors.Is(err, redislock.ErrUnconfirmed) || !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "only 0 of the 1 replicas") {
		t.Fatalf("with no replica: %v; want ErrUnconfirmed, ErrUnreachable and how many answered", err)
	}
	await(t, "an unconfirmed grant is released", func() bool {
		o, err := l.Owner(t.Context(), "a")
		return err == nil && !o.Held()
	})
	if _, err := both.Acquire(t.Context(), locking.Request{Name: "b", Owner: "o", TTL: time.Minute}); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("no replica has it on a fresh connection, and the grant counts: %v", err)
	}
	for _, r := range replicas {
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := take(); err != nil {
		t.Errorf("with the replicas back: %v", err)
	}
}

// TestConfirmForbidden: a user without the permission for WAIT gets an error with this reason, and
// the lock is free.
func TestConfirmForbidden(t *testing.T) {
	c := redistest.Start(t).Client(t)
	l := redislock.New(c, redislock.Config{Confirm: 1})
	defer l.Close()
	if err := c.Do(t.Context(), "acl", "setuser", "default", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []locking.Options{{}, {Permits: 2}, {Mode: locking.Read}, {Mode: locking.Write}} {
		o.TTL = time.Hour
		_, err := l.Acquire(t.Context(), "a", o)
		if err == nil || !strings.Contains(err.Error(), "NOPERM") || errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("%+v: got %v; want what Redis refused", o, err)
		}
		if o, err := l.Owner(t.Context(), "a"); err != nil || o.Held() {
			t.Errorf("it is held for nobody: %+v, %v", o, err)
		}
	}
}
