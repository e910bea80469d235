package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// breakage is one way to get it wrong, and who must notice.
type breakage struct {
	make    func() mutant // for one store; its clients share what the mutant knows
	caught  []string      // by these cases
	history bool          // and by random histories
}

// plain is a mutant that knows nothing.
func plain(m mutant) func() mutant { return func() mutant { return m } }

// changed acquires and then changes the grant.
func changed(f func(r locking.Request, g *locking.Grant)) func() mutant {
	return plain(mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		g, err := d.Acquire(ctx, r)
		if err == nil {
			f(r, &g)
		}
		return g, err
	}})
}

// asked changes the request and says that it was carried out as it was.
func asked(f func(r *locking.Request)) func() mutant {
	return plain(mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		other := r
		f(&other)
		g, err := d.Acquire(ctx, other)
		g.Name, g.Owner, g.TTL, g.Delay = r.Name, r.Owner, r.TTL, r.Delay
		return g, err
	}})
}

// mutants are the broken drivers, in groups as the cases are.
func mutants() map[string]breakage {
	all := make(map[string]breakage)
	for _, group := range []map[string]breakage{grantMutants(), releaseMutants(), renewMutants(), ownerMutants(), lineMutants(), contextMutants()} {
		for name, m := range group {
			all[name] = m
		}
	}
	return all
}

func grantMutants() map[string]breakage {
	return map[string]breakage{
		"counts the lease from the answer on, and too long": {
			make:   changed(func(_ locking.Request, g *locking.Grant) { g.Asked = time.Now().Add(2 * time.Second) }),
			caught: []string{"told before taken", "told before taken, requests silenced"}},
		"forgets that an earlier call got it": {
			make:   changed(func(_ locking.Request, g *locking.Grant) { g.Asked = time.Now() }),
			caught: []string{"a grant that comes after its ttl"}},
		"a repeat lengthens nothing and says it did": {
			make: lengthensNothing, caught: []string{"acquire with its reply lost"}, history: true},
		"tokens stand still": {
			make:   changed(func(_ locking.Request, g *locking.Grant) { g.Token = 5 }),
			caught: []string{"tokens grow", "tokens grow though the store forgets"}, history: true},
		"another token for the same grant": {make: anotherToken, caught: []string{"acquire repeated"}},
		"tokens go back":                   {make: tokensGoBack, caught: []string{"acquire, held, release"}, history: true},
		"counts from one again when the store forgets": {
			make: countsAgain, caught: []string{"tokens grow though the store forgets"}},
		"a take-over keeps the token": {
			make: changed(func(r locking.Request, g *locking.Grant) {
				if r.From != 0 {
					g.Token = r.From
				}
			}),
			caught: []string{"take-over"}, history: true},
		"takes over from anybody": {make: plain(mutant{acquire: takesOver(func(r locking.Request) bool { return r.From != 0 })}),
			caught: []string{"take-over of another grant"}},
		"grants although it is held": {make: plain(mutant{acquire: takesOver(func(locking.Request) bool { return true })}),
			caught: []string{"one at a time", "acquire, held, release"}, history: true},
		"the lease is shorter than it says": {
			make:   asked(func(r *locking.Request) { r.TTL /= 2 }),
			caught: []string{"lapsed lease"}, history: true},
		"the lease is longer than it says": {
			make:   asked(func(r *locking.Request) { r.TTL *= 3 }),
			caught: []string{"fixed"}, history: true},
		"a take-over forgets the delay": {
			make: asked(func(r *locking.Request) {
				if r.From != 0 {
					r.Delay = 0
				}
			}),
			caught: []string{"delay and hint of a take-over"}},
		"a take-over drops the hint": {
			make: asked(func(r *locking.Request) {
				if r.From != 0 {
					r.After = 0
				}
			}),
			caught: []string{"delay and hint of a take-over"}},
		"forgets the delay": {make: asked(func(r *locking.Request) { r.Delay = 0 }), caught: []string{"delay"}},
		"drops the hint":    {make: asked(func(r *locking.Request) { r.After = 0 }), caught: []string{"a token larger than a hint"}},
		"believes any hint": {make: believes, caught: []string{"a hint from the future"}},
		"a repeat is told that it is held": {
			make: repeatIsHeld, caught: []string{"a locker's acquire with its reply lost", "acquire repeated"}, history: true},
		"a late copy locks": {make: lateCopyLocks, caught: []string{"a late copy of an acquire"}, history: true},
		"takes silence for held": {
			make: plain(mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
				g, err := d.Acquire(ctx, r)
				if errors.Is(err, locking.ErrUnreachable) {
					err = &locking.HeldError{Name: r.Name}
				}
				return g, err
			}}),
			caught: []string{"unreachable is not held"}, history: true},
	}
}

func anotherToken() mutant {
	var counter locking.Token
	return changed(func(_ locking.Request, g *locking.Grant) { counter++; g.Token = counter })()
}

func countsAgain() mutant {
	var counter locking.Token
	m := changed(func(_ locking.Request, g *locking.Grant) { counter++; g.Token = counter })()
	m.forget = func() { counter = 0 }
	return m
}

// tokensGoBack turns tokens round, in every call alike.
func tokensGoBack() mutant {
	round := func(t locking.Token) locking.Token {
		if t == 0 {
			return 0
		}
		return 4e15 - t
	}
	return mutant{
		acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			r.From = round(r.From)
			g, err := d.Acquire(ctx, r)
			g.Token = round(g.Token)
			return g, err
		},
		renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
			batch = slices.Clone(batch)
			for i := range batch {
				batch[i].Token = round(batch[i].Token)
			}
			return d.Renew(ctx, batch)
		},
		owner: func(d locking.Driver, ctx context.Context, name string) (locking.Ownership, error) {
			o, err := d.Owner(ctx, name)
			o.Token = round(o.Token)
			return o, err
		},
	}
}

// takesOver takes a lock that is held from its holder, whoever that is.
func takesOver(when func(r locking.Request) bool) func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
	return func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		if o, err := d.Owner(ctx, r.Name); err == nil && o.Held() && o.Owner != r.Owner && when(r) {
			r.From = o.Token
		}
		return d.Acquire(ctx, r)
	}
}

func believes() mutant {
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		g, err := d.Acquire(ctx, r)
		var refused *locking.InputError
		if errors.As(err, &refused) {
			hint := r.After
			r.After = 0
			g, err = d.Acquire(ctx, r)
			g.Token = hint + 1
		}
		return g, err
	}}
}

func repeatIsHeld() mutant {
	var mu sync.Mutex
	seen := make(map[string]bool)
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		mu.Lock()
		again := seen[r.Owner]
		seen[r.Owner] = true
		mu.Unlock()
		g, err := d.Acquire(ctx, r)
		if again && err == nil {
			return g, &locking.HeldError{Name: r.Name, Owner: r.Owner, Until: r.TTL}
		}
		return g, err
	}}
}

func lengthensNothing() mutant {
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		now := time.Now()
		if o, err := d.Owner(ctx, r.Name); err == nil && o.Owner == r.Owner {
			return locking.Grant{Name: r.Name, Owner: r.Owner, Token: o.Token, TTL: r.TTL, Delay: r.Delay, Asked: now}, nil
		}
		return d.Acquire(ctx, r)
	}}
}

func lateCopyLocks() mutant {
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		g, err := d.Acquire(ctx, r)
		if errors.Is(err, locking.ErrLost) {
			if err := forgetLast(ctx, d, r.Name); err != nil {
				return g, err
			}
			return d.Acquire(ctx, r)
		}
		return g, err
	}}
}

// forgetLast makes the store remember other owners as the last who released.
func forgetLast(ctx context.Context, d locking.Driver, name string) error {
	for i := range 8 {
		spy := fmt.Sprint("spy-", i)
		if _, err := d.Acquire(ctx, locking.Request{Name: name, Owner: spy, TTL: time.Second}); err != nil {
			return err
		}
		if err := d.Release(ctx, name, spy); err != nil {
			return err
		}
	}
	return nil
}
