//go:build unix

package pglock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// Times of the crew: a lease left behind by a dead server lapses soon.
const (
	crewTTL    = 1500 * time.Millisecond
	crewMargin = 300 * time.Millisecond
	crewCall   = 300 * time.Millisecond
	crewLock   = "crew"

	// standstill bounds every wait for an event. It judges no time.
	standstill = 3 * time.Minute
)

// sink is the resource behind the lock. It refuses a write with a smaller token than its largest,
// as a guarded store does.
type sink struct {
	token    locking.Token // the largest seen
	owner    string        // of the largest token
	writes   int
	refused  int
	twins    int // two grants with one token
	overlaps int // writes while another lease was valid
	last     *locking.Lease
}

// crew is a number of lockers, each with a pool of its own, that take a lock, write to the sink and give the lock back, again
// and again.
type crew struct {
	tb  testing.TB
	end context.CancelFunc

	mu   sync.Mutex
	sink sink
	done sync.WaitGroup
}

// crewLocker returns the locker of one of a crew.
func crewLocker(tb testing.TB, db *database) *locking.Locker {
	d, _ := db.driver(tb)
	l := locking.New(d, locking.Config{Margin: crewMargin, CallTimeout: crewCall})
	tb.Cleanup(l.Close)
	return l
}

// musters starts a crew.
func musters(tb testing.TB, db *database) *crew {
	ctx, cancel := context.WithCancel(tb.Context())
	w := &crew{tb: tb, end: cancel}
	for range 4 {
		l := crewLocker(tb, db)
		w.done.Go(func() {
			for ctx.Err() == nil {
				w.take(ctx, l)
			}
		})
	}
	tb.Cleanup(w.stop)
	return w
}

// stop ends the crew's work and waits for it.
func (w *crew) stop() {
	w.end()
	w.done.Wait()
}

// take is one turn. A lock that cannot be had is no failure, nor is a missing answer during a
// restart.
func (w *crew) take(ctx context.Context, l *locking.Locker) {
	lease, err := l.Acquire(ctx, crewLock, locking.Options{TTL: crewTTL, Wait: time.Second})
	switch {
	case err == nil:
	case errors.Is(err, locking.ErrHeld), errors.Is(err, locking.ErrUnreachable), ctx.Err() != nil:
		return
	default:
		w.tb.Errorf("acquire: %v", err)
		return
	}
	w.write(lease)
	<-time.After(time.Millisecond) // its work, in which another holder would be seen
	err = lease.Release(ctx)
	if err != nil && !errors.Is(err, locking.ErrLost) && !errors.Is(err, locking.ErrUnreachable) {
		w.tb.Errorf("release: %v", err)
	}
}

// write reports whether the sink has accepted a write of lease.
func (w *crew) write(lease *locking.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.sink
	if s.last != nil && s.last != lease && s.last.Valid() && lease.Valid() {
		s.overlaps++
	}
	s.last = lease
	switch {
	case lease.Token() < s.token:
		s.refused++
		return false
	case lease.Token() == s.token && lease.Owner() != s.owner:
		s.twins++
		return false
	}
	s.token, s.owner = lease.Token(), lease.Owner()
	s.writes++
	return true
}

// seen returns a copy of the sink.
func (w *crew) seen() sink {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sink
}

// more waits until the sink has accepted n more writes.
func (w *crew) more(n int) {
	w.tb.Helper()
	want := w.seen().writes + n
	await(w.tb, "the crew works", func() bool { return w.seen().writes >= want })
}

// report ends the crew and checks its tokens. When no acknowledged write was lost, there was one holder at a time.
func (w *crew) report() {
	w.tb.Helper()
	w.stop()
	s := w.seen()
	w.tb.Logf("%d writes accepted, %d refused, %d twins, %d overlaps", s.writes, s.refused, s.twins, s.overlaps)
	if s.refused > 0 || s.twins > 0 || s.overlaps > 0 {
		w.tb.Errorf("%d writes of holders were refused, %d grants have the token of another one, %d holders overlapped; want none",
			s.refused, s.twins, s.overlaps)
	}
}

// await calls cond until it holds, and fails at a standstill.
func await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > standstill {
			tb.Fatalf("not within %s: %s", standstill, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func request(name, owner string) locking.Request {
	return locking.Request{Name: name, Owner: owner, TTL: time.Minute}
}

// mustAcquire sends one request to a driver.
func mustAcquire(tb testing.TB, d *pglock.Driver, r locking.Request) locking.Grant {
	tb.Helper()
	g, err := d.Acquire(tb.Context(), r)
	if err != nil {
		tb.Fatalf("acquire %s for %s: %v", r.Name, r.Owner, err)
	}
	return g
}
