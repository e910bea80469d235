package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
)

// broken is a driver with one call that lies.
type broken struct {
	locking.Driver
	acquire func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error)
	owner   func(o locking.Ownership) locking.Ownership
}

func (b broken) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if b.acquire == nil {
		return b.Driver.Acquire(ctx, r)
	}
	return b.acquire(b.Driver, ctx, r)
}

func (b broken) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	o, err := b.Driver.Owner(ctx, name)
	if err == nil && b.owner != nil {
		o = b.owner(o)
	}
	return o, err
}

// TestHistoriesCatch shows that the looser model of a quorum's lock still refuses
// what no lock may do.
func TestHistoriesCatch(t *testing.T) {
	mutants := map[string]broken{
		"a lock that is held is granted": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			g, err := d.Acquire(ctx, r)
			if errors.Is(err, locking.ErrHeld) {
				return locking.Grant{Name: r.Name, Owner: r.Owner, Token: time.Now().Add(2 * time.Minute).UnixMicro(), TTL: r.TTL, Asked: time.Now()}, nil
			}
			return g, err
		}},
		"tokens go back": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			g, err := d.Acquire(ctx, r)
			g.Token = 1 + (1<<50-g.Token)%(1<<50)
			return g, err
		}},
		"a holder is taken over before its ttl": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			r.TTL /= 2
			g, err := d.Acquire(ctx, r)
			g.TTL *= 2
			return g, err
		}},
		"a holder is taken over by anybody": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			if o, err := d.Owner(ctx, r.Name); err == nil && o.Owner != r.Owner {
				r.From = o.Token
			}
			return d.Acquire(ctx, r)
		}},
		"a repeat is another grant": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			if o, err := d.Owner(ctx, r.Name); err == nil && o.Owner == r.Owner && d.Release(ctx, r.Name, r.Owner) == nil {
				return locking.Grant{Name: r.Name, Owner: r.Owner, Token: o.Token + 1, TTL: r.TTL, Asked: time.Now()}, nil
			}
			return d.Acquire(ctx, r)
		}},
		"nobody has what is held": {owner: func(o locking.Ownership) locking.Ownership { return locking.Ownership{Name: o.Name} }},
		"another token is shown":  {owner: func(o locking.Ownership) locking.Ownership { o.Token--; return o }},
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			caught(t, func(tb testing.TB, seed uint64) locktest.Store {
				c, _ := embedded(tb, 3)
				c.bootstrap(tb)
				return breakStore(c.patchyStore(seed), m)
			})
		})
	}
	// A fault of a quorum: two clients ask masters of which they share one, with two
	// others of their own, and think two of three to be a majority.
	t.Run("quorums do not meet", func(t *testing.T) {
		caught(t, func(tb testing.TB, _ uint64) locktest.Store {
			c, _ := embedded(tb, 5)
			c.bootstrap(tb)
			left, right := c, c
			left.options, right.options = c.options[:3], c.options[2:]
			s, n := c.store(), 0
			s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
				n++
				if n%2 == 0 {
					return left.store().Connect(tb)
				}
				return right.store().Connect(tb)
			}
			return s
		})
	})
}

func breakStore(s locktest.Store, m broken) locktest.Store {
	connect := s.Connect
	s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
		d, n := connect(tb)
		m := m
		m.Driver = d
		return m, n
	}
	return s
}

// caught plays histories until one is no lock's.
func caught(t *testing.T, store func(tb testing.TB, seed uint64) locktest.Store) {
	t.Helper()
	const most = 40
	for seed := range uint64(most) {
		w := &witness{}
		synctest.Test(t, func(t *testing.T) {
			w.TB = t
			done := make(chan struct{})
			go func() { // of its own: Fatalf ends it
				defer close(done)
				locktest.History(w, store(w, seed+1), seed+1)
			}()
			<-done
		})
		if w.failed != "" {
			t.Logf("caught by history %d: %s", seed+1, w.failed)
			return
		}
	}
	t.Errorf("%d histories were those of a lock", most)
}

// witness is a testing.TB that notes a failure instead of failing.
type witness struct {
	testing.TB
	failed string
}

func (w *witness) Helper() {}

func (w *witness) Fatalf(format string, args ...any) {
	w.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
