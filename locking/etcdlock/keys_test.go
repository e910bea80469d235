//go:build unix

package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// settled waits until the number of goroutines stays the same, and returns it.
func settled(t *testing.T, d *etcdlock.Driver) int {
	t.Helper()
	d.Wait()
	last, same := runtime.NumGoroutine(), 0
	for start := time.Now(); same < 10 && time.Since(start) < 10*time.Second; <-time.After(20 * time.Millisecond) {
		if n := runtime.NumGoroutine(); n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
	return last
}

func keysUnder(t *testing.T, c *clientv3.Client, prefix string) int {
	t.Helper()
	reply, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return int(reply.Count)
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// TestForeignKeys: keys of something else under the prefix concern their own lock at most, and an operator can get rid of them.
func TestForeignKeys(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	l := locker(t, prefix, s)
	for _, key := range []string{"", "/", "/lock", "/lock/", "/lock/a", "/lock/a/", "/lock/a/hold", "/lock/a/queue", "/lock/a/released", "/lock/a/released/x", "/lock/a/queue/", "/lock/a/queue/%zz", "/lock/a/queue/x"} {
		put(t, raw, prefix+key, "{")
	}
	release(t, acquire(t, l, locking.Options{}))
	release(t, acquire(t, l, locking.Options{Wait: time.Second}))

	for _, value := range []string{"", "{", `{"offset":-7}`, `{"offset":"x"}`, "\xff"} {
		put(t, raw, prefix+"/lock/a/hold/%zz", value)
		_, err := l.Try(t.Context(), "a", locking.Options{})
		var held *locking.HeldError
		if !errors.As(err, &held) || held.Owner != "%zz" {
			t.Fatalf("a foreign holder %q: %v", value, err)
		}
		o, err := l.Owner(t.Context(), "a")
		if err != nil || o.Token <= 0 {
			t.Fatalf("a foreign holder %q: %+v, %v", value, o, err)
		}
		lease, err := l.TakeOver(t.Context(), "a", o.Token, locking.Options{})
		if err != nil {
			t.Fatal(err)
		}
		release(t, lease)
	}

	put(t, raw, prefix+"/offset", "many")
	_, err := l.Try(t.Context(), "a", locking.Options{})
	if err == nil || errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), prefix+"/offset") {
		t.Errorf("without a readable offset: %v; want an error that names the key", err)
	}
	put(t, raw, prefix+"/offset", "1000000")
	if lease := acquire(t, l, locking.Options{}); lease.Token() <= 1_000_000 {
		t.Errorf("token %d with an offset of 1000000", lease.Token())
	}
}

// TestPlaceDeleted deletes the key of a waiter: it joins again, and gets the lock.
func TestPlaceDeleted(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	l, other := locker(t, prefix, s), locker(t, prefix, s)
	holder := acquire(t, l, locking.Options{})
	got := make(chan error, 1)
	go func() { // ends with the test's context
		lease, err := other.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
		if err == nil {
			err = lease.Release(context.Background())
		}
		got <- err
	}()
	var created int64
	for range 3 {
		created = awaitPlace(t, raw, prefix+"/lock/a/queue/", created)
		if _, err := raw.Delete(t.Context(), prefix+"/lock/a/queue/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	awaitPlace(t, raw, prefix+"/lock/a/queue/", created)
	release(t, holder)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// awaitPlace waits for a key in the queue that was created after a revision.
func awaitPlace(t *testing.T, c *clientv3.Client, queue string, after int64) int64 {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; <-time.After(5 * time.Millisecond) {
		reply, err := c.Get(t.Context(), queue, clientv3.WithPrefix(), clientv3.WithMinCreateRev(after+1))
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Kvs) > 0 {
			return reply.Kvs[0].CreateRevision
		}
	}
	t.Fatal("the waiter has no place")
	return 0
}

// TestTombstonesRevoked revokes the lease of the released keys: the next release makes another.
func TestTombstonesRevoked(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	d, _ := driver(t, prefix, s)
	l := locking.New(d, locking.Config{})
	defer l.Close()
	for range 3 {
		release(t, acquire(t, l, locking.Options{}))
		d.Wait()
		all, err := raw.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, lease := range all.Leases {
			if _, err := raw.Revoke(t.Context(), lease.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := keysUnder(t, raw, prefix); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// TestNames: names and owners of any text have keys of their own.
func TestNames(t *testing.T) {
	s := startServers(t, 1)[0]
	l := locker(t, newPrefix(), s)
	for _, name := range []string{"a", "a/", "a/hold", "a/hold/x", "%61", "ä b?#", ".", "..", strings.Repeat("ü", 256)} {
		lease, err := l.Acquire(t.Context(), name, locking.Options{})
		if err != nil {
			t.Fatalf("name %q: %v", name, err)
		}
		defer release(t, lease)
		if o, err := l.Owner(t.Context(), name); err != nil || o.Owner != lease.Owner() || o.Waiters != 0 {
			t.Errorf("name %q: %+v, %v", name, o, err)
		}
	}
}

// TestFreeLockCosts: an acquire of a free lock is two requests, its release one and one in the background, a hundred renewals two.
func TestFreeLockCosts(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	n := newNetwork(prefix)
	var sent counter
	d := driverFor(t, prefix, n, sent.count(n.client(s)))
	cost := func(what string, want int64, f func() error) {
		t.Helper()
		before := sent.n.Load()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := sent.n.Load() - before; got != want {
			t.Errorf("%s: %d requests; want %d", what, got, want)
		}
	}
	acquire := func(name string) func() error {
		return func() error {
			_, err := d.Acquire(t.Context(), locking.Request{Name: name, Owner: "o " + name, TTL: 15 * time.Second})
			return err
		}
	}
	release := func(name string) func() error {
		return func() error {
			err := d.Release(t.Context(), name, "o "+name)
			d.Wait()
			return err
		}
	}
	cost("acquire", 2, acquire("first"))
	cost("the first release", 3, release("first")) // with the lease of the tombstones
	cost("acquire", 2, acquire("second"))
	cost("try for a held lock", 4, func() error { // the lease is made, and revoked again
		_, err := d.Acquire(t.Context(), locking.Request{Name: "second", Owner: "other", TTL: 15 * time.Second})
		d.Wait()
		if !errors.Is(err, locking.ErrHeld) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	cost("release", 2, release("second"))
	var batch []locking.Renewal
	for i := range 100 {
		g, err := d.Acquire(t.Context(), locking.Request{Name: strings.Repeat("n", i+1), Owner: "o", TTL: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, locking.Renewal{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL})
	}
	cost("a hundred renewals", 2, func() error {
		answers, err := d.Renew(t.Context(), batch)
		for i, a := range answers {
			if a != locking.Renewed {
				t.Errorf("renewal %d: %v", i, a)
			}
		}
		return err
	})
	cost("150 renewals", 4, func() error {
		_, err := d.Renew(t.Context(), append(batch, batch[:50]...))
		return err
	})
}
