package redislock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

func releaseMutants() map[string]breakage {
	return map[string]breakage{
		"releases nothing and says it did": {
			make:    plain(mutant{release: func(locking.Driver, context.Context, string, string) error { return nil }}),
			caught:  []string{"acquire, held, release", "release all", "do", "re-enter"},
			history: true},
		"a repeated release is lost": {
			make:   onlyTheOwner,
			caught: []string{"release repeated", "release with its reply lost", "who gives up leaves the line"}, history: true},
		"releases whatever is there": {
			make: plain(mutant{release: func(d locking.Driver, ctx context.Context, name, owner string) error {
				if o, err := d.Owner(ctx, name); err == nil && o.Held() {
					owner = o.Owner
				}
				return d.Release(ctx, name, owner)
			}}),
			caught: []string{"release of what is not ours"}, history: true},
		"a release without an answer is any error": {
			make: plain(mutant{release: func(d locking.Driver, ctx context.Context, name, owner string) error {
				if err := d.Release(ctx, name, owner); err != nil {
					return errors.New("it did not work")
				}
				return nil
			}}),
			caught: []string{"a locker's release with its reply lost"}},
	}
}

func onlyTheOwner() mutant {
	return mutant{release: func(d locking.Driver, ctx context.Context, name, owner string) error {
		o, err := d.Owner(ctx, name)
		if err == nil && o.Owner != owner {
			return locking.ErrLost
		}
		return d.Release(ctx, name, owner)
	}}
}

func renewMutants() map[string]breakage {
	renewed := func(batch []locking.Renewal) []locking.RenewAnswer {
		return slices.Repeat([]locking.RenewAnswer{locking.Renewed}, len(batch))
	}
	return map[string]breakage{
		"renews nothing and says it did": {
			make: plain(mutant{renew: func(_ locking.Driver, _ context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				return renewed(batch), nil
			}}),
			caught: []string{"renew lasts", "kept alive", "extend"}, history: true},
		"takes silence for a renewal": {
			make: plain(mutant{renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				if answers, err := d.Renew(ctx, batch); err == nil {
					return answers, nil
				}
				return renewed(batch), nil
			}}),
			caught: []string{
				"told before taken", "told before taken, requests silenced",
				"told before taken, replies silenced", "told before taken, replies delayed"},
			history: true},
		"answers renewals out of order": {
			make: plain(mutant{renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				answers, err := d.Renew(ctx, batch)
				if len(answers) > 1 {
					answers[0], answers[1] = answers[1], answers[0]
				}
				return answers, err
			}}),
			caught: []string{"renew answers each in order"}},
		"what is gone is renewed": {
			make: plain(mutant{renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				if _, err := d.Renew(ctx, batch); err != nil {
					return nil, err
				}
				return renewed(batch), nil
			}}),
			caught: []string{"lapsed lease", "take-over", "revoke"}, history: true},
		"a renewal forgets the delay": {
			make: plain(mutant{renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
				batch = slices.Clone(batch)
				for i := range batch {
					batch[i].Delay = 0
				}
				return d.Renew(ctx, batch)
			}}),
			caught: []string{"delay"}},
	}
}

func ownerMutants() map[string]breakage {
	return map[string]breakage{
		"does not say who": {
			make: plain(mutant{owner: func(d locking.Driver, ctx context.Context, name string) (locking.Ownership, error) {
				o, err := d.Owner(ctx, name)
				o.Holder = ""
				return o, err
			}}),
			caught: []string{"owner"}},
		"says that nobody has it": {
			make: plain(mutant{owner: func(_ locking.Driver, _ context.Context, name string) (locking.Ownership, error) {
				return locking.Ownership{Name: name}, nil
			}}),
			caught: []string{"owner"}, history: true},
		"a revoked lock is free at once": {
			make: plain(mutant{revoke: func(d locking.Driver, ctx context.Context, name string, token locking.Token) error {
				o, err := d.Owner(ctx, name)
				if err != nil || o.Token != token {
					return d.Revoke(ctx, name, token)
				}
				return d.Release(ctx, name, o.Owner)
			}}),
			caught: []string{"revoke", "revoke of what nobody renews"}},
		"revokes whoever has it": {
			make: plain(mutant{revoke: func(d locking.Driver, ctx context.Context, name string, token locking.Token) error {
				if o, err := d.Owner(ctx, name); err == nil && o.Held() {
					token = o.Token
				}
				return d.Revoke(ctx, name, token)
			}}),
			caught: []string{"revoke of another grant"}},
	}
}

func lineMutants() map[string]breakage {
	return map[string]breakage{
		"the line is a stack":            {make: stack, caught: []string{"first come, first served", "fair shares"}},
		"a passer-by gets past the line": {make: pastLine, caught: []string{"nobody gets past the line"}},
		"nobody is called":               {make: plain(mutant{deaf: true}), caught: []string{"the first in line is called"}},
		"keeps the places of those who do not ask": {
			make: keepsPlaces, caught: []string{"who is cut off does not block the line"}},
		"the first in line does not wait": {
			make: plain(mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
				g, err := d.Acquire(ctx, r)
				if held := asHeld(err); held != nil && held.Place == 1 && held.Until < 2*time.Second {
					return takesOver(func(locking.Request) bool { return true })(d, ctx, r)
				}
				return g, err
			}}),
			caught: []string{"the line waits for the end of a lost lease"}},
	}
}

// contextMutants wait for an answer for as long as their client does, whatever their caller has time for.
func contextMutants() map[string]breakage {
	outlive := context.WithoutCancel
	all := make(map[string]breakage)
	for what, m := range map[string]mutant{
		"an acquire": {acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			return d.Acquire(outlive(ctx), r)
		}},
		"a renewal": {renew: func(d locking.Driver, ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
			return d.Renew(outlive(ctx), batch)
		}},
		"a release": {release: func(d locking.Driver, ctx context.Context, name, owner string) error {
			return d.Release(outlive(ctx), name, owner)
		}},
		"a question for the owner": {owner: func(d locking.Driver, ctx context.Context, name string) (locking.Ownership, error) {
			return d.Owner(outlive(ctx), name)
		}},
		"a revocation": {revoke: func(d locking.Driver, ctx context.Context, name string, token locking.Token) error {
			return d.Revoke(outlive(ctx), name, token)
		}},
	} {
		all[what+" outlives its context"] = breakage{make: plain(m), caught: []string{"calls end with their context"}}
	}
	return all
}

// places are owners in the order in which they came. Its lock is never held
// across a call: a bubble's clock stands still while somebody waits for one.
type places struct {
	mu  sync.Mutex
	all []locking.Request
}

func (p *places) come(r locking.Request) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.all, func(o locking.Request) bool { return o.Owner == r.Owner }) {
		p.all = append(p.all, r)
	}
	return p.all[len(p.all)-1].Owner == r.Owner
}

func (p *places) leave(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(p.all, func(o locking.Request) bool { return o.Owner == owner })
}

func (p *places) list() []locking.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// pastLine gives a lock that is kept for somebody in line to one who does not stand there.
func pastLine() mutant {
	var waiting places
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		if r.Queue {
			waiting.come(r)
		}
		g, err := d.Acquire(ctx, r)
		if err == nil {
			waiting.leave(r.Owner)
		}
		held := asHeld(err)
		if held == nil || r.Queue || !slices.ContainsFunc(waiting.list(), func(o locking.Request) bool { return o.Owner == held.Owner }) {
			return g, err
		}
		return takesOver(func(locking.Request) bool { return true })(d, ctx, r)
	}}
}

// stack lets the one who came last go first.
func stack() mutant {
	var waiting places
	return mutant{
		acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
			if !r.Queue {
				return d.Acquire(ctx, r)
			}
			if !waiting.come(r) {
				return locking.Grant{}, &locking.HeldError{Name: r.Name, Owner: "another", Until: time.Second, Place: 2}
			}
			r.Queue = false
			g, err := d.Acquire(ctx, r)
			if err == nil {
				waiting.leave(r.Owner)
			} else if held := asHeld(err); held != nil {
				held.Place = 1
			}
			return g, err
		},
		release: func(d locking.Driver, ctx context.Context, name, owner string) error {
			waiting.leave(owner)
			return d.Release(ctx, name, owner)
		},
		owner: func(d locking.Driver, ctx context.Context, name string) (locking.Ownership, error) {
			o, err := d.Owner(ctx, name)
			o.Waiters = len(waiting.list())
			return o, err
		},
	}
}

// keepsPlaces asks for all who ever asked, as a store does that never forgets a
// waiter.
func keepsPlaces() mutant {
	var waiting places
	return mutant{acquire: func(d locking.Driver, ctx context.Context, r locking.Request) (locking.Grant, error) {
		if r.Queue {
			waiting.come(r)
		}
		for _, other := range waiting.list() {
			if other.Owner != r.Owner {
				_, _ = d.Acquire(ctx, other) // its own answer is another call's
			}
		}
		return d.Acquire(ctx, r)
	}}
}
