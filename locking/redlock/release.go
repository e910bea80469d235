package redlock

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking"
)

// everyAttempt is above the number of any attempt.
const everyAttempt = 1<<53 - 1

// Codes of the other scripts, which say what they mean. Each counts as yes (1), as no
// or, when the master has lost its state, not at all.
const (
	codeYes    = 1
	codeForgot = 4
)

// Release is described at locking.Driver. It returns when a majority has
// answered; the others are told in the background, three times if need be.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	d.grants.remove(owner)
	v, errs := d.poll(ctx, d.giveBack(ctx, name, owner, d.nextAttempt(), true))
	return d.verdict(ctx, "release", v, errs)
}

// withdraw takes back what an owner asked for, up to that attempt, without
// waiting for it.
func (d *Driver) withdraw(name, owner string, upto int64) {
	d.giveBack(context.Background(), name, owner, upto, false)
}

// giveBack tells all masters, three times if need be. The first call of a release
// takes all that the owner ever asked for: nothing that it asks later can be before
// it. When it is told again, that can.
func (d *Driver) giveBack(ctx context.Context, name, owner string, upto int64, release bool) <-chan answer[int] {
	turns := d.lanes.enter(name, owner, len(d.masters), release)
	return askAll(ctx, d, d.persistFor()+d.cfg.MasterTimeout, turns, func(ctx context.Context, i int, m *master) (int, error) {
		var code int
		last := upto
		if release {
			last = everyAttempt
		}
		err := d.persist(ctx, turns[i].end, func(ctx context.Context) (err error) {
			code, err = releaseScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name), owner, last, release, stateKeep).Int()
			last = upto
			return m.explain("release", err)
		})
		return code, err
	})
}

// Revoke is described at locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	v, errs := d.poll(ctx, askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (int, error) {
		code, err := revokeScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name), token).Int()
		return code, m.explain("revoke", err)
	}))
	return d.verdict(ctx, "revoke", v, errs)
}

// poll counts codes until a majority agrees.
func (d *Driver) poll(ctx context.Context, answers <-chan answer[int]) (votes, []error) {
	v := votes{n: len(d.masters)}
	var errs []error
	gather(ctx, answers, v.n, d.cfg.MasterTimeout, func(a answer[int]) bool {
		if a.err != nil {
			errs = append(errs, a.err)
		}
		v.count(a.value, a.err)
		return v.over()
	})
	return v, errs
}

func (v *votes) count(code int, err error) {
	switch {
	case err != nil, code == codeForgot:
		v.failed++
	case code == codeYes:
		v.yes++
	default:
		v.no++
	}
}

// verdict turns votes into the answer of a release or a revocation.
func (d *Driver) verdict(ctx context.Context, what string, v votes, errs []error) error {
	op := fmt.Sprintf("%s at %d redis masters", what, v.n)
	switch {
	case v.won():
		return nil
	case v.lost():
		return fmt.Errorf("%s: %w: it had lapsed, or somebody else holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: %d say yes, %d no, %d nothing; want %d: %w",
		op, locking.ErrUnreachable, v.yes, v.no, v.failed+v.pending(), majority(v.n), silence(ctx, errs))
}
