//go:build unix

package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// locker returns a locker with a client of its own, closed when the test ends.
func locker(t testing.TB, prefix string, servers ...*server) *locking.Locker {
	t.Helper()
	l := etcdlock.New(connect(t, etcdlock.ClientConfig{Endpoints: endpoints(servers...)}), etcdlock.Config{Prefix: prefix})
	t.Cleanup(l.Close)
	return l
}

func acquire(t testing.TB, l *locking.Locker, o locking.Options) *locking.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "a", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lease.Close)
	return lease
}

// TestToldBeforeTaken cuts a holder off silently, while another waits: the holder's context ends first.
func TestToldBeforeTaken(t *testing.T) {
	s := startServers(t, 1)[0]
	for _, ttl := range []time.Duration{3 * time.Second, 3700 * time.Millisecond} {
		prefix := newPrefix()
		d, n := driver(t, prefix, s)
		l := locking.New(d, locking.Config{})
		holder := acquire(t, l, locking.Options{TTL: ttl})
		told := make(chan time.Time, 1)
		context.AfterFunc(holder.Context(), func() { told <- time.Now() })
		n.Cut()
		next := acquire(t, locker(t, prefix, s), locking.Options{Wait: 10 * time.Second})
		taken := time.Now()
		select {
		case at := <-told:
			t.Logf("ttl %s: told %s before another had the lock", ttl, taken.Sub(at))
		default:
			t.Errorf("ttl %s: another has the lock, and the holder's context has not ended", ttl)
		}
		if next.Token() <= holder.Token() {
			t.Errorf("token %d after %d", next.Token(), holder.Token())
		}
		n.Heal()
		if err := holder.Release(t.Context()); !errors.Is(err, locking.ErrLost) || !next.Valid() {
			t.Errorf("release of the lost lease: %v; the next one is valid: %t", err, next.Valid())
		}
		release(t, next)
		l.Close()
	}
}

// loseNth loses the reply to the nth unary request from now on: the caller waits until it gives up.
type loseNth struct{ left atomic.Int64 }

func (l *loseNth) intercept(ctx context.Context, method string, ask, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := call(ctx, method, ask, reply, cc, o...)
	if l.left.Add(-1) == 0 {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return err
}

// TestLostReplies loses the reply to each of the requests of an acquire and its release.
func TestLostReplies(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	watcher := locker(t, prefix, s)
	release(t, acquire(t, watcher, locking.Options{}))
	waitForLeases(t, raw, 1) // of the tombstones
	var last locking.Token
	for n := range 6 {
		var lose loseNth
		c := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s), DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(lose.intercept)}})
		l := etcdlock.New(c, etcdlock.Config{Prefix: prefix, CallTimeout: 300 * time.Millisecond})
		lose.left.Store(int64(n) + 1)
		lease := acquire(t, l, locking.Options{TTL: 5 * time.Second})
		o, err := watcher.Owner(t.Context(), "a")
		if err != nil || o.Owner != lease.Owner() || o.Token != lease.Token() || o.Token <= last {
			t.Errorf("reply %d lost: the lease has token %d, after %d; the store says %+v, %v", n, lease.Token(), last, o, err)
		}
		last = lease.Token()
		release(t, lease)
		if o, err := watcher.Owner(t.Context(), "a"); err != nil || o.Held() {
			t.Errorf("reply %d lost: after the release %+v, %v", n, o, err)
		}
		l.Close()
	}
	waitForLeases(t, raw, 1+6) // a driver's tombstones have a lease each
}

// waitForLeases waits until the cluster has so many leases.
func waitForLeases(t *testing.T, c *clientv3.Client, want int) {
	t.Helper()
	var got int
	for start := time.Now(); time.Since(start) < 10*time.Second; <-time.After(20 * time.Millisecond) {
		all, err := c.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got = len(all.Leases); got == want {
			return
		}
	}
	t.Errorf("%d leases in the cluster; want %d", got, want)
}

// TestServerRestart: a lease survives a restart of the server that is shorter than its ttl.
func TestServerRestart(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	l, other := locker(t, prefix, s), locker(t, prefix, s)
	lease := acquire(t, l, locking.Options{TTL: 15 * time.Second})
	s.kill(t)
	if _, err := other.Try(t.Context(), "a", locking.Options{}); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("acquire without a server: %v", err)
	}
	s.start(t)
	s.ready(t)
	for { // the client may be between two attempts to connect
		err := lease.Extend(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, locking.ErrUnreachable) {
			t.Fatalf("extend after the restart: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if o, err := other.Owner(t.Context(), "a"); err != nil || o.Owner != lease.Owner() || o.Token != lease.Token() {
		t.Errorf("after the restart the store says %+v, %v", o, err)
	}
	release(t, lease)
	if next := acquire(t, other, locking.Options{Wait: 5 * time.Second}); next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

// TestEmptiedCluster: revisions begin anew, so a guard refuses the token, and with its answer as a hint the tokens of all
// locks are larger from then on.
func TestEmptiedCluster(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	l, other := locker(t, prefix, s), locker(t, prefix, s)
	var before locking.Token
	for range 50 {
		lease := acquire(t, l, locking.Options{})
		before = lease.Token()
		release(t, lease)
	}
	s.kill(t)
	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.ready(t)
	fresh := acquire(t, l, locking.Options{Wait: 5 * time.Second})
	if fresh.Token() > before {
		t.Fatalf("token %d after %d: the cluster has not begun anew, and the test shows nothing", fresh.Token(), before)
	}
	release(t, fresh)
	hinted := acquire(t, l, locking.Options{After: before})
	if hinted.Token() <= before {
		t.Errorf("token %d with the hint %d", hinted.Token(), before)
	}
	release(t, hinted)
	if next := acquire(t, other, locking.Options{}); next.Token() <= hinted.Token() { // its driver has not seen the hint
		t.Errorf("token %d after %d", next.Token(), hinted.Token())
	}
	lease, err := other.Acquire(t.Context(), "b", locking.Options{})
	if err != nil || lease.Token() <= hinted.Token() {
		t.Fatalf("another lock: %v", err)
	}
	release(t, lease)
}

// TestUnreachable: no server answers at all.
func TestUnreachable(t *testing.T) {
	port := freePorts(t, 1)[0]
	d := etcdlock.NewDriver(connect(t, etcdlock.ClientConfig{Endpoints: []string{fmt.Sprintf("127.0.0.1:%d", port)}}), etcdlock.Config{})
	defer d.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, acquired := d.Acquire(ctx, locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
	answers, renewed := d.Renew(ctx, []locking.Renewal{{Name: "a"}, {Name: "b"}})
	_, owner := d.Owner(ctx, "a")
	for _, err := range []error{acquired, renewed, owner, d.Release(ctx, "a", "o"), d.Revoke(ctx, "a", 7)} {
		if !errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("got %v; want %v", err, locking.ErrUnreachable)
		}
	}
	if len(answers) != 2 || answers[0] != locking.Unknown || answers[1] != locking.Unknown {
		t.Errorf("renewals were answered %v", answers)
	}
}

func TestRefused(t *testing.T) {
	c := connect(t, etcdlock.ClientConfig{Endpoints: []string{"127.0.0.1:1"}})
	for _, prefix := range []string{"a/lock/b", "a/lock", "a\n", "a\xff", strings.Repeat("a", 257)} {
		d := etcdlock.NewDriver(c, etcdlock.Config{Prefix: prefix})
		_, acquired := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
		_, renewed := d.Renew(t.Context(), []locking.Renewal{{Name: "a"}})
		_, owner := d.Owner(t.Context(), "a")
		for _, err := range []error{acquired, renewed, owner, d.Release(t.Context(), "a", "o"), d.Revoke(t.Context(), "a", 7)} {
			var refused *locking.InputError
			if !errors.As(err, &refused) || refused.Field != "Config.Prefix" {
				t.Errorf("prefix %.20q: %v", prefix, err)
			}
		}
	}
}
