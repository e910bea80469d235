//go:build unix

package pglock_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// activity counts the connections of a namespace.
func (d *database) activity(tb testing.TB) (n int) {
	tb.Helper()
	err := d.admin.QueryRow(tb.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%"+d.cfg.Namespace+"\\_lock%' AND pid <> pg_backend_pid()").Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestNoGrowth acquires 10,000 times, with and without contention.
func TestNoGrowth(t *testing.T) {
	t.Parallel()
	const contenders, names, rounds = 4, 5, 2500
	db := newDatabase(t, newPostgres(t, "fsync=off").dsn(), "")
	db.listen = db.dsn
	lockers := make([]*locking.Locker, contenders)
	for i := range lockers {
		d, _ := db.driver(t)
		lockers[i] = locking.New(d, locking.Config{})
		defer lockers[i].Close()
	}
	work := func(rounds int) {
		var wg sync.WaitGroup
		for i, l := range lockers {
			wg.Go(func() {
				for j := range rounds {
					lease, err := l.Acquire(t.Context(), fmt.Sprint("lock ", (i+j)%names), locking.Options{Wait: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	size := func() int {
		n, err := strconv.Atoi(admin(t, &server{port: int(db.admin.Config().ConnConfig.Port)},
			"SELECT pg_total_relation_size('"+db.cfg.Namespace+"_locks') + pg_total_relation_size('"+db.cfg.Namespace+"_lock_waiters')"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	work(rounds / 10)
	goroutines, connections, bytes := runtime.NumGoroutine(), db.activity(t), size()
	work(rounds - rounds/10)
	t.Logf("goroutines %d and %d, connections %d and %d, bytes %d and %d", goroutines, runtime.NumGoroutine(), connections, db.activity(t), bytes, size())
	if n := db.count(t, "locks"); n != names {
		t.Errorf("%d rows for %d locks", n, names)
	}
	if n := db.count(t, "lock_waiters"); n != 0 {
		t.Errorf("%d rows of waiters, and nobody waits", n)
	}
	// Each locker may still have the connection and the goroutine of its notifications.
	if n := db.activity(t); n > connections+2*contenders {
		t.Errorf("%d connections after %d", n, connections)
	}
	await(t, "no goroutines are left over", func() bool { return runtime.NumGoroutine() <= goroutines+2*contenders })
	if n := size(); n > 2<<20 {
		t.Errorf("the tables have %d bytes", n)
	}
}

// TestTidyDoesNotWait: a new lock is not delayed by an idle one that another owner acquires just
// now.
func TestTidyDoesNotWait(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	mustAcquire(t, d, request("x", "a"))
	db.exec(t, "UPDATE "+db.cfg.Namespace+"_locks SET until = now() - interval '3 days', day = now()::date - 3, token = 1")
	unblock := blocked(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := d.Acquire(ctx, request("y", "a")); err != nil {
		t.Errorf("acquire beside an idle lock in use: %v", err)
	}
	unblock()
	mustAcquire(t, d, request("z", "a"))
	if n := db.count(t, "locks"); n != 2 {
		t.Errorf("%d rows; want those of y and z", n)
	}
}

// TestTidy: each new lock removes up to two locks that were idle for a day, and no younger ones.
func TestTidy(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	insert := func(names, until, token string) {
		db.exec(t, "INSERT INTO "+db.cfg.Namespace+"_locks (name, until, day, token, timeline) "+
			"SELECT '"+names+" ' || n, "+until+", (("+until+") AT TIME ZONE 'UTC')::date, "+token+", '' FROM generate_series(1, 60) n")
	}
	past := "(extract(epoch FROM now() - interval '3 days') * 1000000)::bigint"
	insert("idle", "now() - interval '3 days'", past)
	insert("young", "now() - interval '23 hours'", past)
	insert("held for long", "now() + interval '1 day'", past)
	insert("ahead", "now() - interval '3 days'", "(extract(epoch FROM now()) * 1000000)::bigint")
	db.exec(t, "INSERT INTO "+db.cfg.Namespace+"_lock_waiters VALUES ('idle 1', 'dead', 1, now() - interval '3 days', '')")
	last := mustAcquire(t, d, request("idle 60", "a")).Token // and in use from now on
	for i := range 40 {
		mustAcquire(t, d, request(fmt.Sprint("new ", i), "a"))
	}
	for like, want := range map[string]int{"idle %": 1, "young %": 60, "held %": 60, "ahead %": 60, "new %": 40} {
		var n int
		if err := db.admin.QueryRow(t.Context(), "SELECT count(*) FROM "+db.cfg.Namespace+"_locks WHERE name LIKE $1", like).Scan(&n); err != nil || n != want {
			t.Errorf("%d locks %s, %v; want %d", n, like, err, want)
		}
	}
	if n := db.count(t, "lock_waiters"); n != 0 {
		t.Errorf("%d waiters of locks that were removed", n)
	}
	if again := mustAcquire(t, d, request("idle 1", "a")).Token; again <= last {
		t.Errorf("a lock that was removed begins with token %d; another one had %d before", again, last)
	}
}
