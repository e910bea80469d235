//go:build unix

package pglock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	pool := connect(t, theServer(t).dsn()+" pool_max_conns=12", nil, nil)
	cfg := pglock.Config{Schema: "Several", Namespace: "at_once"}
	errs := make([]error, 12)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = pglock.Migrate(t.Context(), pool, cfg) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, pglock.NewDriver(pool, cfg), request("x", "a"))
	var version int
	if err := pool.QueryRow(t.Context(), `SELECT version FROM "Several".at_once_lock_version`).Scan(&version); err != nil || version < 1 {
		t.Errorf("version %d, %v", version, err)
	}
}

func TestMigrateRefusesNewer(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	if err := pglock.Migrate(t.Context(), db.admin, db.cfg); err != nil {
		t.Errorf("migrate once more: %v", err)
	}
	db.exec(t, "UPDATE "+db.cfg.Namespace+"_lock_version SET version = 1000")
	err := pglock.Migrate(t.Context(), db.admin, db.cfg)
	if !errors.Is(err, pglock.ErrNewerSchema) || !strings.Contains(err.Error(), "1000") {
		t.Errorf("migrate a database of version 1000: %v; want %v", err, pglock.ErrNewerSchema)
	}
	db.exec(t, "DROP FUNCTION "+db.cfg.Namespace+"_lock_acquire")
	db.cfg.Migrate = true
	if _, err := pglock.NewDriver(db.admin, db.cfg).Acquire(t.Context(), request("x", "a")); !errors.Is(err, pglock.ErrNewerSchema) {
		t.Errorf("acquire in a database of version 1000: %v; want %v", err, pglock.ErrNewerSchema)
	}
}

func TestMissingTables(t *testing.T) {
	t.Parallel()
	pool := connect(t, theServer(t).dsn(), nil, nil)
	for _, cfg := range []pglock.Config{{Namespace: "missing"}, {Schema: "missing", Namespace: "missing"}} {
		d := pglock.NewDriver(pool, cfg)
		_, acquire := d.Acquire(t.Context(), request("x", "a"))
		_, owner := d.Owner(t.Context(), "x")
		_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: "a", Token: 1, TTL: time.Minute}})
		for _, err := range []error{acquire, owner, renew, d.Release(t.Context(), "x", "a"), d.Revoke(t.Context(), "x", 1)} {
			if err == nil || errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "run pglock.Migrate") {
				t.Errorf("without tables: %v; want the advice to run Migrate", err)
			}
		}
		cfg.Migrate = true
		mustAcquire(t, pglock.NewDriver(pool, cfg), request("x", "a"))
	}
}

func TestRefusedConfig(t *testing.T) {
	t.Parallel()
	pool := connect(t, theServer(t).dsn(), nil, nil)
	for field, cfg := range map[string]pglock.Config{
		"Config.Schema":    {Schema: `a"b`},
		"Config.Namespace": {Namespace: "a-b"},
		"Config.Margin":    {Margin: -1},
	} {
		l := pglock.New(pool, cfg)
		_, err := l.Acquire(t.Context(), "x", locking.Options{})
		var input *locking.InputError
		if !errors.As(err, &input) || input.Field != field {
			t.Errorf("%+v: %v; want an *InputError of %s", cfg, err, field)
		}
		l.Close()
	}
	var input *locking.InputError
	if _, err := pglock.NewDriver(nil, pglock.Config{}).Owner(t.Context(), "x"); !errors.As(err, &input) || input.Field != "pool" {
		t.Errorf("without a pool: %v", err)
	}
	if err := pglock.Migrate(t.Context(), pool, pglock.Config{Namespace: strings.Repeat("a", 25)}); !errors.As(err, &input) {
		t.Errorf("migrate a long namespace: %v", err)
	}
}

// TestLeastGrants uses a role with the grants listed in doc.go, and without each of them in turn.
func TestLeastGrants(t *testing.T) {
	t.Parallel()
	s := newPostgres(t, "fsync=off")
	admins := connect(t, s.dsn(), nil, nil)
	cfg := pglock.Config{Schema: "locks"}
	if err := pglock.Migrate(t.Context(), admins, cfg); err != nil {
		t.Fatal(err)
	}
	grants := []string{
		"GRANT USAGE ON SCHEMA locks TO app",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON locks.escapement_locks, locks.escapement_lock_waiters TO app",
	}
	all := func(d *pglock.Driver, owner string) error {
		r := request("x", owner)
		r.Queue = true
		g, err := d.Acquire(t.Context(), r)
		if err != nil {
			return err
		}
		waiter := r
		waiter.Owner += " waits"
		if _, err := d.Acquire(t.Context(), waiter); !errors.Is(err, locking.ErrHeld) {
			return fmt.Errorf("a waiter: %w", err)
		}
		_, err = d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: owner, Token: g.Token, TTL: time.Minute}})
		if err != nil {
			return err
		}
		if o, err := d.Owner(t.Context(), "x"); err != nil || o.Waiters != 1 {
			return fmt.Errorf("owner %+v: %w", o, err)
		}
		return errors.Join(d.Revoke(t.Context(), "x", g.Token), d.Release(t.Context(), "x", owner), d.Release(t.Context(), "x", waiter.Owner))
	}
	admin(t, s, "CREATE ROLE app LOGIN")
	d := pglock.NewDriver(connect(t, strings.Replace(s.dsn(), "user=postgres", "user=app", 1), nil, nil), cfg)
	for i, grant := range grants {
		if err := all(d, fmt.Sprint("early ", i)); err == nil || errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "grant the role") {
			t.Errorf("with %d of %d grants: %v; want a refusal, and what to grant", i, len(grants), err)
		}
		admin(t, s, grant)
	}
	if err := all(d, "a"); err != nil {
		t.Error(err)
	}
}
