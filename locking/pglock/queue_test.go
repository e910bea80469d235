//go:build unix

package pglock_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// joins requests lock x and wants that place in its queue; 0: the queue is full.
func joins(t *testing.T, d *pglock.Driver, owner string, want int) {
	t.Helper()
	r := request("x", owner)
	r.Queue = true
	_, err := d.Acquire(t.Context(), r)
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Owner != "holder" || held.Place != want {
		t.Fatalf("%s: %v; want held by the holder, and place %d", owner, err, want)
	}
}

// TestFullQueue: a waiter for whom the queue is full gets no place, and gets one when another waiter leaves, or has died.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	const places = 1000
	db := theDatabase(t)
	d, _ := db.driver(t)
	mustAcquire(t, d, request("x", "holder"))
	waiters := db.cfg.Namespace + "_lock_waiters"
	db.exec(t, "INSERT INTO "+waiters+" SELECT 'x', 'w' || n, n, now() + interval '1 hour', '' FROM generate_series(1, 1000) n")
	joins(t, d, "late", 0)
	if err := d.Release(t.Context(), "x", "w7"); !errors.Is(err, locking.ErrLost) {
		t.Errorf("leave the queue: %v", err)
	}
	joins(t, d, "late", places)
	joins(t, d, "later", 0)
	db.exec(t, "UPDATE "+waiters+" SET alive = now() WHERE owner IN ('w8', 'w9')")
	joins(t, d, "later", places-1)
	if n := db.count(t, "lock_waiters"); n != places-1 {
		t.Errorf("%d rows of waiters; want %d, without the dead", n, places-1)
	}
}

// TestJoinBesideRelease: a waiter whose place is not visible yet when the lock is released sends
// one more request, and gets the lock.
func TestJoinBesideRelease(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	holder, _ := db.driver(t)
	d, _ := db.driver(t)
	mustAcquire(t, holder, request("x", "holder"))
	tx, err := db.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiters := db.cfg.Namespace + "_lock_waiters"
	if _, err := tx.Exec(t.Context(), "INSERT INTO "+waiters+" VALUES ('x', 'w', 1, now(), '')"); err != nil { // w's own row waits for its end
		t.Fatal(err)
	}
	r := request("x", "w")
	r.Queue = true
	got := make(chan error, 1)
	go func() {
		_, err := d.Acquire(t.Context(), r)
		got <- err
	}()
	await(t, "the waiter joins", func() bool {
		var n int
		err := db.admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"+db.cfg.Namespace+"_lock_acquire%'").Scan(&n)
		return err == nil && n == 1
	})
	if err := holder.Release(t.Context(), "x", "holder"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the waiter got %v; want the lock", err)
	}
}

// TestJoinBesideHandOver: a waiter whose request crosses the grant of the lock does not stay in the
// queue.
func TestJoinBesideHandOver(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	join := func() {
		db.exec(t, "INSERT INTO "+db.cfg.Namespace+"_lock_waiters VALUES ('x', 'a', 1, now() + interval '1 hour', '')")
	}
	mustAcquire(t, d, request("x", "a"))
	join()
	mustAcquire(t, d, request("x", "a"))
	if n := db.count(t, "lock_waiters"); n != 0 {
		t.Errorf("the holder waits in its own queue (%d rows)", n)
	}
	join()
	if err := d.Release(t.Context(), "x", "a"); err != nil {
		t.Fatal(err)
	}
	if o, err := d.Owner(t.Context(), "x"); err != nil || o.Held() {
		t.Errorf("after the release: %+v, %v; want nobody", o, err)
	}
}

// TestWaiterTakesOver: a waiter that takes the lock over leaves the queue.
func TestWaiterTakesOver(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	g := mustAcquire(t, d, request("x", "holder"))
	joins(t, d, "w", 1)
	r := request("x", "w")
	r.From, r.Queue = g.Token, true
	mustAcquire(t, d, r)
	if n := db.count(t, "lock_waiters"); n != 0 {
		t.Errorf("the holder waits in its own queue (%d rows)", n)
	}
}

// TestDeadWaiter: a waiter that sent no request for the queue timeout is not given the lock.
func TestDeadWaiter(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	mustAcquire(t, d, request("x", "holder"))
	joins(t, d, "dead", 1)
	joins(t, d, "alive", 2)
	db.exec(t, "UPDATE "+db.cfg.Namespace+"_lock_waiters SET alive = now() WHERE owner = 'dead'")
	joins(t, d, "alive", 1)
	if err := d.Release(t.Context(), "x", "holder"); err != nil {
		t.Fatal(err)
	}
	if o, err := d.Owner(t.Context(), "x"); err != nil || o.Owner != "alive" || o.Waiters != 0 {
		t.Errorf("after the release: %+v, %v; want the living waiter", o, err)
	}
}

// TestNewcomerAtLapse: after the lapse of a lease, a newcomer does not overtake the first waiter.
// The lapsed holder cannot renew, nor release.
func TestNewcomerAtLapse(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	g := mustAcquire(t, d, request("x", "holder"))
	joins(t, d, "first", 1)
	db.exec(t, "UPDATE "+db.cfg.Namespace+"_locks SET until = clock_timestamp()")
	answers, err := d.Renew(t.Context(), []locking.Renewal{{Name: "x", Owner: "holder", Token: g.Token, TTL: time.Minute}})
	if err != nil || answers[0] != locking.Gone {
		t.Errorf("renew a lapsed lease: %v, %v; want gone", answers, err)
	}
	if err := d.Release(t.Context(), "x", "holder"); !errors.Is(err, locking.ErrLost) {
		t.Errorf("release a lapsed lease: %v; want %v", err, locking.ErrLost)
	}
	_, err = d.Acquire(t.Context(), request("x", "newcomer"))
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Owner != "first" || held.Until <= 0 || held.Until > locking.QueueTimeout {
		t.Errorf("a newcomer: %v; want held by the first waiter for up to %s", err, locking.QueueTimeout)
	}
	if next := mustAcquire(t, d, request("x", "first")); next.Token <= g.Token {
		t.Errorf("token %d after %d", next.Token, g.Token)
	}
}

// TestListenTooLate: a waiter is notified when its driver begins to listen, because the lock may have been handed over before.
func TestListenTooLate(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	cfg := db.cfg
	n := &network{}
	cfg.Listen = n.over(t, db.dsn)
	d := pglock.NewDriver(connect(t, db.dsn, nil, nil), cfg)
	t.Cleanup(d.Close)
	t.Cleanup(n.Heal)
	n.Cut()
	mustAcquire(t, d, request("x", "holder"))
	notified, stop := d.Listen("x", "w")
	defer stop()
	joins(t, d, "w", 1)
	select {
	case <-notified:
		t.Error("notified over a network that is cut")
	default:
	}
	n.Heal()
	select {
	case <-notified:
	case <-time.After(10 * time.Second):
		t.Error("not notified")
	}
}

// waitFor has l wait for lock x, and returns when it is queued.
func waitFor(t *testing.T, l *locking.Locker) <-chan *locking.Lease {
	t.Helper()
	before, err := l.Owner(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *locking.Lease, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		lease, err := l.Acquire(t.Context(), "x", locking.Options{Wait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		got <- lease
	})
	t.Cleanup(wg.Wait)
	await(t, "the waiter is queued", func() bool {
		o, err := l.Owner(t.Context(), "x")
		return err == nil && o.Waiters > before.Waiters
	})
	return got
}

// TestWithoutListen: without a connection for notifications, a waiter gets the lock that it was given by asking.
func TestWithoutListen(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	db.listen = ""
	d, _ := db.driver(t)
	mustAcquire(t, d, request("x", "a"))
	got := waitFor(t, crewLocker(t, db))
	if err := d.Release(t.Context(), "x", "a"); err != nil {
		t.Fatal(err)
	}
	if o, err := d.Owner(t.Context(), "x"); err != nil || !o.Held() || o.Owner == "a" {
		t.Errorf("after the release %+v, %v; want the waiter as the owner", o, err)
	}
	lease := <-got
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// listeners counts the connections for notifications.
func (d *database) listeners(tb testing.TB) (n int) {
	tb.Helper()
	err := d.admin.QueryRow(tb.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN \""+d.cfg.Namespace+"\\_%' OR query = '-- ping'").Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestListenAgain ends the connection for notifications: it is replaced while there is a waiter,
// ends with the last waiter, and a closed driver opens it again.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	s := newPostgres(t, "fsync=off")
	db := newDatabase(t, s.dsn(), s.dsn())
	n := &network{}
	var mu sync.Mutex
	var log bytes.Buffer
	cfg := db.cfg
	cfg.Listen = n.over(t, db.dsn)
	cfg.Logger = slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))
	l := pglock.New(connect(t, db.dsn, n, nil), cfg)
	t.Cleanup(l.Close)
	d, _ := db.driver(t)
	for i := range 3 {
		owner := fmt.Sprint("a", i)
		mustAcquire(t, d, request("x", owner))
		got := waitFor(t, l)
		await(t, "somebody listens", func() bool { return db.listeners(t) == 1 })
		if i == 0 {
			db.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' OR query = '-- ping'")
			await(t, "nobody listens", func() bool { return db.listeners(t) == 0 })
			await(t, "somebody listens again", func() bool { return db.listeners(t) == 1 })
		}
		released := time.Now()
		if err := d.Release(t.Context(), "x", owner); err != nil {
			t.Fatal(err)
		}
		lease := <-got
		t.Logf("handed over within %s", time.Since(released).Round(time.Millisecond))
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			l.Close()
		}
		await(t, "the connection ends without waiters", func() bool { return db.listeners(t) == 0 })
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "no notifications for waiting locks") {
		t.Errorf("the log says nothing about the broken connection: %q", log.String())
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestTimeline: the first token that a server with another history gives is a minute ahead of its clock and of the last.
func TestTimeline(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	d, _ := db.driver(t)
	first := mustAcquire(t, d, request("x", "a"))
	if ahead := first.Token - time.Now().UnixMicro(); ahead < 50e6 || ahead > 70e6 {
		t.Errorf("the first token is %d µs ahead of the clock; want a minute", ahead)
	}
	for i, owner := range []string{"b", "c"} {
		if err := d.Release(t.Context(), "x", string(rune('a'+i))); err != nil {
			t.Fatal(err)
		}
		next := mustAcquire(t, d, request("x", owner))
		if jump := next.Token - first.Token; i == 0 && jump != 1 || i == 1 && jump < 60e6 {
			t.Errorf("grant %d: the token is %d larger; want 1, and a minute on another timeline", i+2, jump)
		}
		db.exec(t, "UPDATE "+db.cfg.Namespace+"_locks SET timeline = 'another'")
	}
}
