//go:build unix

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

const margin = 500 * time.Millisecond

// locker returns a locker with a client of its own, closed when the test ends.
func locker(tb testing.TB, root string, servers ...string) (*locking.Locker, *network) {
	c, n := connect(tb, servers)
	l := zklock.New(c, zklock.Config{Root: root, Margin: margin, CallTimeout: time.Second})
	tb.Cleanup(l.Close)
	return l, n
}

// TestFollowerDiesAfterARenewal cuts a holder off together with its server, right after a renewal.
// The renewal has not reached the leader, which learns from a follower's next ping which sessions
// are alive.
func TestFollowerDiesAfterARenewal(t *testing.T) {
	e := startEnsemble(t, fast)
	_, followers := e.leader(t)
	const ttl = 3 * time.Second
	for i, age := range []time.Duration{ttl / 4, ttl / 3 * 7 / 8, ttl / 3} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			name := fmt.Sprint("a", i)
			holder, n := locker(t, "/follower", followers[0].addr())
			lease, err := holder.Acquire(t.Context(), name, locking.Options{TTL: ttl, Fixed: true})
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Close()
			other, _ := locker(t, "/follower", followers[1].addr())
			<-time.After(age) // most of a ping interval after the last ping
			if err := lease.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			n.Cut()
			followers[0].signal(syscall.SIGSTOP)
			defer followers[0].signal(syscall.SIGCONT)
			extended := time.Now()
			b, err := other.Acquire(t.Context(), name, locking.Options{TTL: ttl, Wait: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(extended)
			t.Logf("the next holder came %s after the renewal of %s", took, ttl)
			if lease.Valid() || !errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost) {
				t.Errorf("another has the lock %s after a renewal for %s, and the holder's context has not ended", took, ttl)
			}
			if err := b.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// sink is the resource: it accepts a write with a token that is not below the largest so far, and
// counts the rejected writes.
type sink struct {
	mu       sync.Mutex
	last     locking.Token
	accepted int
	stale    int
}

func (s *sink) write(token locking.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.last {
		s.stale++
		return
	}
	if token > s.last {
		s.accepted++
	}
	s.last = token
}

func (s *sink) grants() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// TestLeaderKilledUnderLoad kills the leader twice while six clients take turns. Each holder writes to the sink; there is one
// holder at a time, and no write comes with a token below an earlier one.
func TestLeaderKilledUnderLoad(t *testing.T) {
	e := startEnsemble(t, fast)
	var s sink
	var inside atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for range 6 {
		l, _ := locker(t, "/load", e.addrs()...)
		clients.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, "a", locking.Options{TTL: 6 * time.Second, Wait: time.Minute})
				if err != nil {
					if ctx.Err() == nil {
						t.Logf("a client: %v", err)
					}
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				if lease.Valid() {
					s.write(lease.Token())
				}
				inside.Add(-1)
				if err := lease.Release(ctx); err != nil && ctx.Err() == nil {
					t.Logf("release: %v", err)
				}
			}
		})
	}
	defer clients.Wait()
	defer cancel()
	more := func(what string) {
		t.Helper()
		before, start := s.grants(), time.Now()
		await(t, what, func() bool { return s.grants() > before+100 })
		t.Logf("%s: 100 grants in %s", what, time.Since(start))
	}
	more("before")
	for range 2 {
		leader, _ := e.leader(t)
		leader.kill()
		more("after the leader was killed")
		if err := leader.start(); err != nil {
			t.Fatal(err)
		}
		if err := leader.ready(); err != nil {
			t.Fatal(err)
		}
	}
	more("after the last server was started again")
	cancel()
	clients.Wait()
	t.Logf("%d grants, %d stale writes", s.accepted, s.stale)
	if s.stale > 0 {
		t.Errorf("%d writes came with a token below an earlier one", s.stale)
	}
}

// TestServerWithoutQuorum leaves a holder and a waiter with a server that has no quorum.
func TestServerWithoutQuorum(t *testing.T) {
	e := startEnsemble(t, fast)
	_, followers := e.leader(t)
	alone := followers[0]
	l, _ := locker(t, "/minority", alone.addr())
	other, _ := locker(t, "/minority", alone.addr())
	lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	killed := time.Now()
	for _, z := range e {
		if z != alone {
			z.kill()
		}
	}
	select {
	case <-lease.Context().Done():
	case <-time.After(6 * time.Second):
		t.Fatal("the lease is valid 6 s after the quorum was lost")
	}
	t.Logf("the holder's context ended %s after the quorum was lost", time.Since(killed))
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locking.ErrLeaseLost) {
		t.Errorf("cause %v", cause)
	}
	_, err = other.Try(t.Context(), "a", locking.Options{TTL: 4 * time.Second})
	if !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) {
		t.Errorf("acquire without a quorum: %v", err)
	}
	for _, z := range e {
		if z != alone {
			if err := z.start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := other.Acquire(t.Context(), "a", locking.Options{TTL: 4 * time.Second, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the next holder came %s after the quorum was lost", time.Since(killed))
	if b.Token() <= lease.Token() {
		t.Errorf("token %d after %d", b.Token(), lease.Token())
	}
	if err := b.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestServerBehind connects a client to a server that gets all changes late. Its answers about a
// lock are true all the same.
func TestServerBehind(t *testing.T) {
	far := new(proxies)
	e := startEnsembleFar(t, far, fast)
	if leader, _ := e.leader(t); leader == e[0] {
		t.Fatal("the server behind the proxies leads")
	}
	const delay = 300 * time.Millisecond
	d, _ := locker(t, "/behind", e[0].addr())
	other, _ := locker(t, "/behind", e[1].addr())
	nothing := func(context.Context, *locking.Lease) error { return nil }
	if err := d.Do(t.Context(), "a", locking.Options{}, nothing); err != nil { // opens the session
		t.Fatal(err)
	}
	far.delay.Store(int64(delay))
	for range 3 {
		lease, err := other.Acquire(t.Context(), "a", locking.Options{Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the server behind knows the holder", func() bool {
			o, err := d.Owner(t.Context(), "a")
			return err == nil && o.Owner == lease.Owner()
		})
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o, err := d.Owner(t.Context(), "a"); err == nil && o.Held() {
			t.Errorf("after the release a server behind says %+v", o)
		}
		if lease, err := d.Try(t.Context(), "a", locking.Options{}); errors.Is(err, locking.ErrHeld) {
			t.Errorf("after the release, over a server behind: %v", err)
		} else if err == nil {
			_ = lease.Release(t.Context()) // which may take longer than a call may
		}
	}
}

// TestServerRestart kills a server alone, with its data on the disk, and starts it again while a lock is held.
func TestServerRestart(t *testing.T) {
	z := startServer(t)
	l, _ := locker(t, "/restart", z.addr())
	other, _ := locker(t, "/restart", z.addr())
	lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	z.kill()
	if err := z.start(); err != nil {
		t.Fatal(err)
	}
	if err := z.ready(); err != nil {
		t.Fatal(err)
	}
	await(t, "the lease is renewed after the restart", func() bool { return lease.Extend(t.Context()) == nil })
	if _, err := other.Try(t.Context(), "a", locking.Options{}); err != nil && !errors.Is(err, locking.ErrHeld) && !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("another after the restart: %v; want held", err)
	} else if err == nil {
		t.Error("another has the lock after the restart")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := other.Acquire(t.Context(), "a", locking.Options{Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if b.Token() <= lease.Token() {
		t.Errorf("token %d after %d", b.Token(), lease.Token())
	}
	if err := b.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
