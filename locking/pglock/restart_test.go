//go:build unix

package pglock_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// restarted has a crew work while the server ends by a signal, and starts again.
func restarted(t *testing.T, signal syscall.Signal) {
	s := newPostgres(t)
	db := newDatabase(t, s.dsn(), s.dsn())
	w := musters(t, db)
	w.more(50)
	for range 3 {
		if err := s.end(signal); err != nil {
			t.Fatal(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		w.more(20)
		t.Logf("20 turns within %s of the start", time.Since(started).Round(time.Millisecond))
	}
	w.report()
}

func TestFastRestart(t *testing.T) { t.Parallel(); restarted(t, syscall.SIGINT) }

// TestImmediateRestart ends the server as a crash does: it recovers from its log.
func TestImmediateRestart(t *testing.T) { t.Parallel(); restarted(t, syscall.SIGQUIT) }

// TestGrantOutlivesACrash: a grant is on disk before it is acknowledged, though the server is set not to wait. Its log writer
// is set to come too late.
func TestGrantOutlivesACrash(t *testing.T) {
	t.Parallel()
	s := newPostgres(t, "synchronous_commit=off", "wal_writer_delay=10s")
	db := newDatabase(t, s.dsn(), "")
	d, _ := db.driver(t)
	for _, owner := range []string{"a", "b"} { // the first acquire of a lock writes more
		g := mustAcquire(t, d, request("x", owner))
		if err := s.end(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		if o, err := d.Owner(t.Context(), "x"); err != nil || o.Owner != owner || o.Token != g.Token {
			t.Fatalf("after a crash: %+v, %v; want %+v", o, err, g)
		}
		renewed, err := d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: owner, Token: g.Token, TTL: 10 * time.Minute}})
		if err != nil || renewed[0] != locking.Renewed {
			t.Fatalf("renew: %v, %v", renewed, err)
		}
		if err := s.end(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		if o, err := d.Owner(t.Context(), "x"); err != nil || o.Left < 5*time.Minute {
			t.Fatalf("after a renewal and a crash: %+v, %v; want the renewed lease", o, err)
		}
		if err := d.Release(t.Context(), "x", owner); err != nil {
			t.Fatal(err)
		}
	}
}
