package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
)

// mutant is a driver with one rule broken. A nil function leaves the rule whole.
type mutant struct {
	locking.Driver
	acquire func(d locking.Driver, ctx context.Context, name, owner string, ttl time.Duration) (locking.Grant, error)
	renew   func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error)
	release func(d locking.Driver, ctx context.Context, name, owner string) error
}

func (m mutant) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (locking.Grant, error) {
	if m.acquire == nil {
		return m.Driver.Acquire(ctx, name, owner, ttl)
	}
	return m.acquire(m.Driver, ctx, name, owner, ttl)
}

func (m mutant) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	if m.renew == nil {
		return m.Driver.Renew(ctx, batch)
	}
	return m.renew(m.Driver, ctx, batch)
}

func (m mutant) Release(ctx context.Context, name, owner string) error {
	if m.release == nil {
		return m.Driver.Release(ctx, name, owner)
	}
	return m.release(m.Driver, ctx, name, owner)
}

// changed acquires and then changes the grant.
func changed(f func(g *locking.Grant)) mutant {
	return mutant{acquire: func(d locking.Driver, ctx context.Context, name, owner string, ttl time.Duration) (locking.Grant, error) {
		g, err := d.Acquire(ctx, name, owner, ttl)
		if err == nil {
			f(&g)
		}
		return g, err
	}}
}

// mutants are the broken drivers, and one case of the kit that must catch each.
func mutants() map[string]struct {
	mutant mutant
	caught string
} {
	var counter locking.Token
	return map[string]struct {
		mutant mutant
		caught string
	}{
		"counts the lease from the answer on, and too long": {
			changed(func(g *locking.Grant) { g.Asked = time.Now().Add(time.Second) }), "told before taken"},
		"forgets that an earlier call got it": {
			changed(func(g *locking.Grant) { g.Asked = time.Now() }), "acquire with its reply lost"},
		"tokens stand still": {
			changed(func(g *locking.Grant) { g.Token = 5 }), "tokens grow"},
		"another token for the same grant": {
			changed(func(g *locking.Grant) { counter++; g.Token = counter }), "acquire repeated"},
		"takes silence for held": {
			mutant{acquire: func(d locking.Driver, ctx context.Context, name, owner string, ttl time.Duration) (locking.Grant, error) {
				g, err := d.Acquire(ctx, name, owner, ttl)
				if errors.Is(err, locking.ErrUnreachable) {
					err = &locking.HeldError{Name: name}
				}
				return g, err
			}}, "unreachable is not held"},
		"renews nothing and says it did": {
			mutant{renew: func(_ locking.Driver, _ context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				return slices.Repeat([]locking.RenewAnswer{locking.Renewed}, len(batch)), nil
			}}, "renew lasts"},
		"answers renewals out of order": {
			mutant{renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				answers, err := d.Renew(ctx, batch)
				if len(answers) > 1 {
					answers[0], answers[1] = answers[1], answers[0]
				}
				return answers, err
			}}, "renew answers each in order"},
		"a repeated release is lost": {
			mutant{release: func(d locking.Driver, ctx context.Context, name, owner string) error {
				if _, err := d.Acquire(ctx, name, "spy", time.Second); err == nil {
					return errors.Join(d.Release(ctx, name, "spy"), locking.ErrLost)
				}
				return d.Release(ctx, name, owner)
			}}, "release repeated"},
		"releases whatever is there": {
			mutant{release: func(d locking.Driver, ctx context.Context, name, owner string) error {
				var held *locking.HeldError
				if _, err := d.Acquire(ctx, name, "spy", time.Second); errors.As(err, &held) {
					owner = held.Owner
				}
				return d.Release(ctx, name, owner)
			}}, "release of what is not ours"},
		"releases nothing and says it did": {
			mutant{release: func(locking.Driver, context.Context, string, string) error { return nil }}, "acquire, held, release"},
	}
}

// TestKitCatchesMutants shows that the cases of the kit can fail.
func TestKitCatchesMutants(t *testing.T) {
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(locktest.Cases(), func(c locktest.Case) bool { return c.Name == m.caught })
			if i < 0 {
				t.Fatalf("the kit has no case %q", m.caught)
			}
			synctest.Test(t, func(t *testing.T) {
				s := store(embedded(t).Options())
				connect := s.Connect
				s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
					d, n := connect(tb)
					broken := m.mutant
					broken.Driver = d
					return broken, n
				}
				if failures := observe(t, func(tb testing.TB) { locktest.Cases()[i].Run(tb, s) }); len(failures) == 0 {
					t.Errorf("%q passes", m.caught)
				}
			})
		})
	}
}

// witness is a testing.TB that notes failures instead of failing.
type witness struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// observe runs f and returns what failed.
func observe(t *testing.T, f func(tb testing.TB)) []string {
	w := &witness{TB: t}
	done := make(chan struct{})
	go func() { // of its own, because Fatal ends it
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(w.cleanups) {
				c()
			}
		}()
		f(w)
	}()
	<-done
	return w.failures
}

func (w *witness) Helper() {}

func (w *witness) Cleanup(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleanups = append(w.cleanups, f)
}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}

func (w *witness) Fatal(args ...any) { w.Fatalf("%s", fmt.Sprint(args...)) }
func (w *witness) Error(args ...any) { w.Errorf("%s", fmt.Sprint(args...)) }
