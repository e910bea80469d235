//go:build unix

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// newStandby starts a standby of s by streaming replication. With sync, s waits for it at each commit.
func newStandby(tb testing.TB, s *server, sync bool) *server {
	tb.Helper()
	standby, err := newServer()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := standby.remove(); err != nil {
			tb.Error(err)
		}
	})
	err = standby.run("pg_basebackup", "-D", standby.data(), "-R", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres",
		"--checkpoint=fast", "--no-sync")
	if err == nil {
		err = standby.startData()
	}
	if err != nil {
		tb.Fatal(err)
	}
	if sync {
		admin(tb, s, "ALTER SYSTEM SET synchronous_standby_names = '*'")
		admin(tb, s, "SELECT pg_reload_conf()")
	}
	state := map[bool]string{true: "sync", false: "async"}[sync]
	await(tb, "the standby is "+state, func() bool {
		return admin(tb, s, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = '"+state+"'") == "1"
	})
	return standby
}

// admin runs a statement over a connection of its own, and returns its first value.
func admin(tb testing.TB, s *server, statement string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 60*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.dsn())
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	results, err := c.PgConn().Exec(ctx, statement).ReadAll()
	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return ""
	}
	return string(results[0].Rows[0][0])
}

// either is the connection string of the one of two servers that takes writes.
func either(a, b *server) string {
	return fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=%d,%d target_session_attrs=read-write user=postgres dbname=postgres sslmode=disable connect_timeout=2",
		a.port, b.port)
}

// TestPromotion has a crew work while the primary dies and its synchronous standby is promoted: no grant is lost.
func TestPromotion(t *testing.T) {
	t.Parallel()
	primary := newPostgres(t)
	standby := newStandby(t, primary, true)
	dsn := either(primary, standby)
	db := newDatabase(t, dsn, dsn)
	w := musters(t, db)
	w.more(50)
	before := w.seen().token
	if err := primary.end(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	if got := admin(t, standby, "SELECT pg_promote()"); got != "t" {
		t.Fatalf("pg_promote: %s", got)
	}
	w.more(50)
	t.Logf("50 turns within %s of the end", time.Since(ended).Round(time.Millisecond))
	if ahead := w.seen().token - before; ahead < 60e6 {
		t.Errorf("the tokens on the new timeline are %d µs ahead of those before; want a minute at least", ahead)
	}
	w.report()
}

// TestGrantsLost loses grants that an asynchronous primary has acknowledged: a holder gets the lock
// when the standby receives nothing any more, and holds it while the promoted standby gives it
// away.
func TestGrantsLost(t *testing.T) {
	t.Parallel()
	primary := newPostgres(t)
	standby := newStandby(t, primary, false)
	dsn := either(primary, standby)
	db := newDatabase(t, dsn, dsn)
	w := musters(t, db)
	w.more(50)
	sleepy := crewLocker(t, db)
	admin(t, standby, "ALTER SYSTEM SET primary_conninfo = ''")
	admin(t, standby, "SELECT pg_reload_conf()")
	await(t, "the standby is cut off", func() bool {
		return admin(t, primary, "SELECT count(*) FROM pg_stat_replication") == "0"
	})
	w.more(20)
	w.stop()
	stale, err := sleepy.Acquire(t.Context(), crewLock, locking.Options{TTL: 12 * time.Second, Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stale.Close)
	if !w.write(stale) {
		t.Error("the holder's first write was refused")
	}
	if err := primary.end(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	admin(t, standby, "SELECT pg_promote()")
	next, err := crewLocker(t, db).Acquire(t.Context(), crewLock, locking.Options{TTL: 12 * time.Second, Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	if !w.write(next) {
		t.Errorf("the holder at the promoted standby has token %d, and was refused after %d", next.Token(), stale.Token())
	}
	if w.write(stale) {
		t.Error("a holder whose grant was lost writes after its successor")
	}
	select {
	case <-stale.Context().Done():
	case <-time.After(12 * time.Second):
	}
	if err := context.Cause(stale.Context()); !errors.Is(err, locking.ErrLeaseLost) {
		t.Errorf("the context of the holder whose grant was lost has cause %v; want %v", err, locking.ErrLeaseLost)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyStandby: a standby is reported as read-only, and never as a holder.
func TestReadOnlyStandby(t *testing.T) {
	t.Parallel()
	primary := newPostgres(t)
	db := newDatabase(t, primary.dsn(), "")
	d, _ := db.driver(t)
	mustAcquire(t, d, request("x", "a"))
	standby := newStandby(t, primary, true)
	reader := pglock.NewDriver(connect(t, standby.dsn(), nil, nil), db.cfg)
	_, free := reader.Acquire(t.Context(), request("y", "b"))
	_, renew := reader.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: "a", Token: 1, TTL: time.Minute}})
	for _, err := range []error{free, renew, reader.Release(t.Context(), "x", "a"), reader.Revoke(t.Context(), "x", 1)} {
		if !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("at a standby: %v; want %v, and that it is read-only", err, locking.ErrUnreachable)
		}
	}
}
