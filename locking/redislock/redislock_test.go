//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// wantInput wants err to be an *InputError of that field.
func wantInput(t *testing.T, what string, err error, field string) {
	t.Helper()
	var input *locking.InputError
	if !errors.As(err, &input) || input.Field != field || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("%s: %v; want an *InputError of %s", what, err, field)
	}
}

func TestRefused(t *testing.T) {
	retrying := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer retrying.Close()
	d := redislock.NewDriver(retrying, redislock.Config{})
	_, acquire := d.Acquire(t.Context(), request("o", time.Minute))
	_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a"}})
	_, owner := d.Owner(t.Context(), "a")
	_, _, list := d.List(t.Context(), "", 0)
	for _, err := range []error{acquire, renew, owner, list, d.Release(t.Context(), "a", "o")} {
		wantInput(t, "a client that retries", err, "client")
	}

	_, c := redistest.StartEmbedded(t)
	for field, cfgs := range map[string][]redislock.Config{
		"Config.Namespace":   {{Namespace: "a}b"}, {Namespace: "a:lock"}},
		"Config.Confirm":     {{Confirm: -1}},
		"Config.Margin":      {{Margin: -1}},
		"Config.CallTimeout": {{CallTimeout: -1}},
	} {
		for _, cfg := range cfgs {
			_, err := redislock.New(c, cfg).Acquire(t.Context(), "a", locking.Options{})
			wantInput(t, "a config", err, field)
		}
	}
	for _, namespace := range []string{"", "team-a", "a b", "a:locks", "lock:a"} {
		if _, err := redislock.NewDriver(c, redislock.Config{Namespace: namespace}).Owner(t.Context(), "a"); err != nil {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	c := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer c.Close()
	d := redislock.NewDriver(c, redislock.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, acquire := d.Acquire(ctx, request("o", time.Minute))
	_, renew := d.Renew(ctx, []locking.Renewal{{Name: "a"}, {Name: "b"}})
	for _, err := range []error{acquire, renew, d.Release(ctx, "a", "o")} {
		if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("got %v; want ErrUnreachable and the address", err)
		}
	}
}

// TestFreeLockCosts: acquire and release of a free lock are two calls, and neither answer is a list, which Redis would send in
// two pieces (decision 0020).
func TestFreeLockCosts(t *testing.T) {
	c := redistest.Start(t).Client(t)
	d := redislock.NewDriver(c, redislock.Config{})
	var sent counter
	for _, owner := range []string{"first", "second"} { // the first one loads the scripts into the server
		if owner == "second" {
			c.AddHook(&sent)
		}
		if _, err := d.Acquire(t.Context(), request(owner, 15*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context(), "a", owner); err != nil {
			t.Fatal(err)
		}
	}
	if n := sent.n.Load(); n != 2 || sent.lists.Load() != 0 {
		t.Errorf("%d calls, of which %d are answered with a list; want 2 and 0", n, sent.lists.Load())
	}
}

// TestReleaseOnAFullServer: a lock is given back though Redis takes no more writes.
func TestReleaseOnAFullServer(t *testing.T) {
	c := redistest.Start(t).Client(t)
	l := redislock.New(c, redislock.Config{})
	defer l.Close()
	lease := hold(t, l, "a")
	c.ConfigSet(t.Context(), "maxmemory", "1")
	give(t, lease)
	c.ConfigSet(t.Context(), "maxmemory", "0")
	if o, err := l.Owner(t.Context(), "a"); o.Held() || err != nil {
		t.Errorf("after the release %+v, %v", o, err)
	}
}

// TestReleaseAllBesideAcquire is for the race detector.
func TestReleaseAllBesideAcquire(t *testing.T) {
	_, c := redistest.StartEmbedded(t)
	l := redislock.New(c, redislock.Config{})
	defer l.Close()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				_ = l.ReleaseAll(context.Background())
			}
		}
	}()
	for range 200 {
		if lease, err := l.Acquire(t.Context(), "a", locking.Options{}); err == nil {
			_ = lease.Release(t.Context())
		}
	}
	close(done)
	<-stopped
}
