//go:build unix

package pglock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// blocked holds the row lock of lock x until it is called.
func blocked(t *testing.T, db *database) (unblock func()) {
	t.Helper()
	tx, err := db.admin.BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+db.cfg.Namespace+"_locks WHERE name = 'x' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestTimeouts: a call that the server gives up is unanswered, and proves nothing about the lock.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	first, _ := db.driver(t)
	g := mustAcquire(t, first, request("x", "a"))
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		d := pglock.NewDriver(connect(t, db.dsn+" "+setting+"=100", nil, nil), db.cfg)
		unblock := blocked(t, db)
		_, acquire := d.Acquire(t.Context(), request("x", "a"))
		answers, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: "a", Token: g.Token, TTL: time.Minute}})
		for _, err := range []error{acquire, renew, d.Release(t.Context(), "x", "a"), d.Revoke(t.Context(), "x", g.Token)} {
			if !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) {
				t.Errorf("%s: %v; want %v", setting, err, locking.ErrUnreachable)
			}
		}
		if len(answers) > 0 {
			t.Errorf("%s: renew answers %v", setting, answers)
		}
		unblock()
	}
}

// TestSerializable: with a stricter default isolation than the functions need, calls are repeated.
func TestSerializable(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	db.dsn += " default_transaction_isolation=serializable"
	w := musters(t, db)
	w.more(100)
	w.report()
}

// TestReadOnlyDefault: a role that is set read-only gets the error of a standby.
func TestReadOnlyDefault(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	db.dsn += " default_transaction_read_only=on"
	d, _ := db.driver(t)
	_, err := d.Acquire(t.Context(), request("x", "a"))
	if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("read-only: %v; want %v and the reason", err, locking.ErrUnreachable)
	}
}

// TestCredentials: no error and no log has the password, and each has the address.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const password = "hunter2-secret"
	dsn := "host=127.0.0.1 port=1 user=app password=" + password + " dbname=postgres connect_timeout=1"
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var log bytes.Buffer
	listen, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l := pglock.New(pool, pglock.Config{Logger: logger, Listen: listen})
	_, err = l.Acquire(t.Context(), "x", locking.Options{Wait: 300 * time.Millisecond})
	l.Close()
	if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a server that is not there: %v; want %v, and its address", err, locking.ErrUnreachable)
	}
	if all := err.Error() + log.String(); strings.Contains(all, password) {
		t.Errorf("the password is in %q", all)
	}
}

// TestStaleConnections: after a restart, connections of the pool that the server has closed are replaced, and no call fails.
func TestStaleConnections(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	for i, owner := range []string{"a", "b", "c", "d"} {
		g := mustAcquire(t, d, request("x", owner))
		db.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%"+db.cfg.Namespace+"_lock%' AND pid <> pg_backend_pid()")
		switch i % 2 {
		case 0:
			answers, err := d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: owner, Token: g.Token, TTL: time.Minute}})
			if err != nil || answers[0] != locking.Renewed {
				t.Fatalf("renew over a closed connection: %v, %v", answers, err)
			}
		case 1:
			if o, err := d.Owner(t.Context(), "x"); err != nil || o.Owner != owner {
				t.Fatalf("owner over a closed connection: %+v, %v", o, err)
			}
		}
		if err := d.Release(t.Context(), "x", owner); err != nil {
			t.Fatal(err)
		}
	}
}
