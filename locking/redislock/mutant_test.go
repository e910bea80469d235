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

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
)

// mutant is a driver with one rule broken. A nil function leaves the rule whole.
type mutant struct {
	locking.Driver
	acquire func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error)
	renew   func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error)
	release func(d locking.Driver, ctx context.Context, name, owner string) error
	owner   func(d locking.Driver, ctx context.Context, name string) (locking.Ownership, error)
	revoke  func(d locking.Driver, ctx context.Context, name string, token locking.Token) error
	deaf    bool   // nobody is called
	forget  func() // the store forgets
}

func (m mutant) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if m.acquire == nil {
		return m.Driver.Acquire(ctx, r)
	}
	return m.acquire(m.Driver, ctx, r)
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

func (m mutant) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	if m.owner == nil {
		return m.Driver.Owner(ctx, name)
	}
	return m.owner(m.Driver, ctx, name)
}

func (m mutant) Revoke(ctx context.Context, name string, token locking.Token) error {
	if m.revoke == nil {
		return m.Driver.Revoke(ctx, name, token)
	}
	return m.revoke(m.Driver, ctx, name, token)
}

func (m mutant) Listen(name, owner string) (<-chan struct{}, func()) {
	if m.deaf {
		return nil, func() {}
	}
	return m.Driver.(locking.Waker).Listen(name, owner)
}

func (m mutant) HangUp() { m.Driver.(locking.Waker).HangUp() }

var _ locking.Waker = mutant{} // else no mutant would have a line

// broken makes a store whose clients all are this mutant.
func broken(s locktest.Store, m mutant) locktest.Store {
	connect, forget := s.Connect, s.Forget
	s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
		d, n := connect(tb)
		m := m
		m.Driver = d
		return m, n
	}
	s.Forget = func(tb testing.TB) {
		forget(tb)
		if m.forget != nil {
			m.forget()
		}
	}
	return s
}

// TestKitCatchesMutants shows that the cases of the kit can fail.
func TestKitCatchesMutants(t *testing.T) {
	cases := make(map[string]locktest.Case)
	for _, c := range locktest.Cases() {
		cases[c.Name] = c
	}
	for name, m := range mutants() {
		for _, caught := range m.caught {
			t.Run(name+"/"+caught, func(t *testing.T) {
				c, ok := cases[caught]
				if !ok {
					t.Fatalf("the kit has no case %q", caught)
				}
				failures := inABubble(t, func(tb testing.TB) { c.Run(tb, broken(store(embedded(tb).Options()), m.make())) })
				if len(failures) == 0 {
					t.Fatalf("%q passes", caught)
				}
				t.Logf("caught: %s", failures[0])
			})
		}
	}
}

// TestEveryCaseCatchesAMutant names the cases that nobody has seen fail.
func TestEveryCaseCatchesAMutant(t *testing.T) {
	caught := []string{"a random history"} // see TestHistoriesCatchMutants
	for _, m := range mutants() {
		caught = append(caught, m.caught...)
	}
	for _, c := range locktest.Cases() {
		if !slices.Contains(caught, c.Name) {
			t.Errorf("no mutant is there for %q to catch", c.Name)
		}
	}
}

// TestHistoriesCatchMutants shows that the model refuses what a lock would not
// answer, and how many histories that takes.
func TestHistoriesCatchMutants(t *testing.T) {
	const most = 300
	all := mutants()
	for name, m := range all {
		if !m.history {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(most) {
				failures := inABubble(t, func(tb testing.TB) { locktest.History(tb, broken(store(embedded(tb).Options()), m.make()), seed+1) })
				if len(failures) > 0 {
					t.Logf("caught by history %d", seed+1)
					return
				}
			}
			t.Errorf("%d histories were those of a lock", most)
		})
	}
}

// inABubble runs f in a bubble of its own and returns what failed.
func inABubble(t *testing.T, f func(tb testing.TB)) (failures []string) {
	synctest.Test(t, func(t *testing.T) { failures = observe(t, f) })
	return failures
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

// asHeld returns err as a *HeldError, or nil.
func asHeld(err error) *locking.HeldError {
	var held *locking.HeldError
	errors.As(err, &held)
	return held
}
