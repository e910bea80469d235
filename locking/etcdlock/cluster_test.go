//go:build unix

package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// sink is a resource that notes the tokens of its writers.
type sink struct {
	mu     sync.Mutex
	tokens []locking.Token
	last   time.Time
	gap    time.Duration // the longest between two tokens
	grew   chan struct{} // capacity 1
	t      *testing.T
}

// write notes a token, which must be larger than all before.
func (s *sink) write(token locking.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.tokens); n > 0 {
		if token <= s.tokens[n-1] {
			s.t.Errorf("token %d at the sink after %d", token, s.tokens[n-1])
		}
		s.gap = max(s.gap, time.Since(s.last))
	}
	s.tokens, s.last = append(s.tokens, token), time.Now()
	select {
	case s.grew <- struct{}{}:
	default:
	}
}

// count returns the number of tokens, and the longest gap since the last count.
func (s *sink) count() (int, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gap := s.gap
	s.gap = 0
	return len(s.tokens), gap
}

// awaitMore waits until there are so many more tokens, and returns the longest gap.
func (s *sink) awaitMore(more int) (longest time.Duration) {
	s.t.Helper()
	n, _ := s.count()
	for want := n + more; n < want; {
		select {
		case <-s.grew:
			var gap time.Duration
			n, gap = s.count()
			longest = max(longest, gap)
		case <-time.After(30 * time.Second):
			s.t.Fatalf("%d tokens; want %d", n, want)
		}
	}
	return longest
}

// leader returns the server that leads.
func leader(t *testing.T, servers []*server) *server {
	t.Helper()
	for start := time.Now(); time.Since(start) < 20*time.Second; <-time.After(50 * time.Millisecond) {
		for _, s := range servers {
			if s.cmd == nil {
				continue
			}
			c, err := etcdlock.Connect(etcdlock.ClientConfig{Endpoints: []string{s.client}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			status, err := c.Status(ctx, s.client)
			cancel()
			_ = c.Close() // nothing was left under way
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return s
			}
		}
	}
	t.Fatal("the cluster has no leader")
	return nil
}

// TestLeaderKilled kills the leader of three servers under load, twice.
func TestLeaderKilled(t *testing.T) {
	const contenders = 4
	servers := startServers(t, 3)
	prefix := newPrefix()
	ctx, stop := context.WithCancel(t.Context())
	at := &sink{grew: make(chan struct{}, 1), t: t}
	var working sync.WaitGroup
	for range contenders {
		l := locker(t, prefix, servers...)
		working.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, "a", locking.Options{TTL: 4 * time.Second, Wait: 10 * time.Second})
				if err != nil {
					if ctx.Err() == nil && !errors.Is(err, locking.ErrUnreachable) && !errors.Is(err, locking.ErrHeld) && !errors.Is(err, locking.ErrLost) {
						t.Errorf("acquire: %v", err)
					}
					continue
				}
				if lease.Valid() {
					at.write(lease.Token())
				}
				_ = lease.Release(ctx) // an unknown outcome is the locker's business
			}
		})
	}
	at.awaitMore(50)
	for range 2 {
		s := leader(t, servers)
		s.kill(t)
		t.Logf("the longest pause after the leader was killed is %s", at.awaitMore(50))
		s.start(t)
		s.ready(t)
	}
	at.awaitMore(50)
	stop()
	working.Wait()
	n, _ := at.count()
	t.Logf("%d grants", n)
}

// TestMinority leaves one member of three: it grants no lock, and a holder's context ends by its
// deadline.
func TestMinority(t *testing.T) {
	servers := startServers(t, 3)
	prefix := newPrefix()
	l := locker(t, prefix, servers...)
	holder := acquire(t, l, locking.Options{TTL: 4 * time.Second})
	ended := make(chan time.Time, 1)
	context.AfterFunc(holder.Context(), func() { ended <- time.Now() })
	cut := time.Now()
	for _, s := range servers[1:] {
		s.kill(t)
	}
	minority := locker(t, prefix, servers[0])
	for _, name := range []string{"a", "b"} {
		if _, err := minority.Try(t.Context(), name, locking.Options{}); !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, locking.ErrHeld) {
			t.Errorf("lock %s at a minority: %v; want %v", name, err, locking.ErrUnreachable)
		}
	}
	t.Logf("the holder's context ended after %s", (<-ended).Sub(cut))
	if cause := context.Cause(holder.Context()); !errors.Is(cause, locking.ErrLeaseLost) {
		t.Errorf("the holder's context has cause %v", cause)
	}
	for _, s := range servers[1:] {
		s.start(t)
	}
	next := acquire(t, minority, locking.Options{Wait: 30 * time.Second})
	if next.Token() <= holder.Token() {
		t.Errorf("token %d after %d", next.Token(), holder.Token())
	}
	release(t, next)
}

// TestStoppedLeader stops the leader, which the holder is connected to, until another has the lock at the new leader. The old
// one goes on with a renewal that waits in its socket.
func TestStoppedLeader(t *testing.T) {
	servers := startServers(t, 3)
	prefix := newPrefix()
	old := leader(t, servers)
	d, _ := driver(t, prefix, old)
	l := locking.New(d, locking.Config{})
	defer l.Close()
	holder := acquire(t, l, locking.Options{TTL: 4 * time.Second})
	told := make(chan time.Time, 1)
	context.AfterFunc(holder.Context(), func() { told <- time.Now() })
	var rest []*server
	for _, s := range servers {
		if s != old {
			rest = append(rest, s)
		}
	}
	other := locker(t, prefix, rest...)

	old.signal(t, syscall.SIGSTOP)
	answer := make(chan locking.RenewAnswer, 1)
	go func() { // ends with its context
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		answers, _ := d.Renew(ctx, []locking.Renewal{{Name: "a", Owner: holder.Owner(), Token: holder.Token(), TTL: 4 * time.Second}})
		answer <- answers[0]
	}()
	next := acquire(t, other, locking.Options{Wait: 30 * time.Second})
	taken := time.Now()
	select {
	case at := <-told:
		t.Logf("told %s before another had the lock", taken.Sub(at))
	default:
		t.Error("another has the lock, and the holder's context has not ended")
	}
	if next.Token() <= holder.Token() {
		t.Errorf("token %d after %d", next.Token(), holder.Token())
	}
	old.signal(t, syscall.SIGCONT)
	if got := <-answer; got != locking.Gone && got != locking.Unknown {
		t.Errorf("the old leader's renewal: %v", got)
	}
	release(t, next)
}

// TestGrowth makes 10,000 acquisitions. Nothing is left of them but one released key for each lock, on one lease.
func TestGrowth(t *testing.T) {
	const locks, contenders = 40, 50
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	n := newNetwork(prefix)
	var dials counter
	d := driverFor(t, prefix, n, dials.countDials(n.client(s)))
	l := locking.New(d, locking.Config{CallTimeout: 5 * time.Second})
	defer l.Close()
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	work := func(rounds int) {
		var working sync.WaitGroup
		for i := range contenders {
			name := fmt.Sprint("lock ", i%locks)
			working.Go(func() {
				for range rounds {
					if err := l.Do(t.Context(), name, locking.Options{Wait: time.Minute}, func(context.Context, *locking.Lease) error { return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		working.Wait()
	}
	work(3)
	before := settled(t, d)
	work(rounds)
	after := settled(t, d)
	if after > before+3 {
		t.Errorf("%d goroutines after %d acquisitions, %d before", after, contenders*rounds, before)
	}
	waitForLeases(t, raw, 1)
	if n := keysUnder(t, raw, prefix); n != locks {
		t.Errorf("%d keys; want one for each of %d locks", n, locks)
	}
	if n := dials.n.Load(); n != 1 {
		t.Errorf("%d connections; want 1", n)
	}
}
