package redislock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

func TestConfirm(t *testing.T) {
	m, replicas := redistest.StartReplicas(t, 2)
	master := m.Client(t)
	master.ScriptFlush(t.Context())
	l := New(master, Config{Confirm: 1})
	t.Cleanup(l.Close)

	hold := func() error {
		lease, err := l.Acquire(t.Context(), "a", locking.Options{})
		if err != nil {
			return err
		}
		return lease.Release(t.Context())
	}
	if err := hold(); err != nil {
		t.Fatalf("with both replicas: %v", err)
	}
	if err := replicas[0].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := hold(); err != nil {
		t.Fatalf("with one of two replicas: %v", err)
	}
	if err := replicas[1].Pause(); err != nil {
		t.Fatal(err)
	}
	err := hold()
	if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "only 0 of the 1 replicas") {
		t.Fatalf("with no replica: %v; want ErrUnreachable and how many answered", err)
	}
	for end := time.Now().Add(10 * time.Second); ; { // it is given back in the background
		o, err := l.Owner(t.Context(), "a")
		if err == nil && !o.Held() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("an unconfirmed grant was kept: %+v, %v", o, err)
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, r := range replicas {
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := hold(); err != nil {
		t.Errorf("with the replicas back: %v", err)
	}
}

// WAIT on a connection that has written nothing is answered with all replicas.
func TestConfirmAsksTheConnectionThatWrote(t *testing.T) {
	m, replicas := redistest.StartReplicas(t, 2)
	master := m.Client(t)
	for _, r := range replicas {
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	d := NewDriver(master, Config{Confirm: 2})
	if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute}); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("no replica has it, and the grant counts: %v", err)
	}
	for _, r := range replicas {
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

// A user that may not WAIT is told so, and leaves no lock behind that nobody holds.
func TestConfirmForbidden(t *testing.T) {
	m, _ := redistest.StartReplicas(t, 1)
	c := m.Client(t)
	l := New(c, Config{Confirm: 1})
	t.Cleanup(l.Close)
	if err := c.Do(t.Context(), "acl", "setuser", "default", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Acquire(t.Context(), "a", locking.Options{TTL: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "NOPERM") || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("got %v; want what Redis refused", err)
	}
	if o, err := l.Owner(t.Context(), "a"); err != nil || o.Held() {
		t.Errorf("it is held for nobody: %+v, %v", o, err)
	}
}
