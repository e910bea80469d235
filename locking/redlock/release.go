package redlock

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking"
)

// allAttempts is above the number of any attempt.
const allAttempts = 1<<53 - 1

// codeYes is the success of all scripts but acquire.lua. codeLostState does not count; each other code
// counts as no.
const codeYes = 1

// Release implements locking.Driver. It returns when a majority has answered; the other masters are asked in the
// background, three times at most.
func (d *driver) Release(ctx context.Context, name, owner string) error {
	d.grants.remove(owner)
	v, errs := d.poll(ctx, d.sendRelease(ctx, name, owner, d.nextAttempt(), true))
	return d.verdict(ctx, "release", v, errs)
}

// withdraw releases what an owner's attempts up to upto may have got, without waiting.
func (d *driver) withdraw(name, owner string, upto int64) {
	d.sendRelease(context.Background(), name, owner, upto, false)
}

// sendRelease releases at all masters, with three tries each. The first try of a release covers all attempts of
// the owner. A repeated one covers those up to upto, because the owner may have asked again meanwhile.
func (d *driver) sendRelease(ctx context.Context, name, owner string, upto int64, release bool) <-chan answer[int] {
	turns := d.order.enter(name, owner, len(d.masters), release)
	return askAll(ctx, d, d.repeatTime()+d.cfg.MasterTimeout, turns, func(ctx context.Context, i int, m *master) (int, error) {
		var code int
		last := upto
		if release {
			last = allAttempts
		}
		err := d.repeat(ctx, turns[i].end, func(ctx context.Context) (err error) {
			code, err = releaseScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name), owner, last, release, stateKeep).Int()
			last = upto
			return m.explain("release", err)
		})
		return code, err
	})
}

// Revoke implements locking.Driver.
func (d *driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	v, errs := d.poll(ctx, askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (int, error) {
		code, err := revokeScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name), token).Int()
		return code, m.explain("revoke", err)
	}))
	return d.verdict(ctx, "revoke", v, errs)
}

// poll counts codes until a majority agrees.
func (d *driver) poll(ctx context.Context, answers <-chan answer[int]) (votes, []error) {
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
	case err != nil, code == codeLostState:
		v.failed++
	case code == codeYes:
		v.yes++
	default:
		v.no++
	}
}

// verdict converts the votes on a release or a revocation to an error.
func (d *driver) verdict(ctx context.Context, verb string, v votes, errs []error) error {
	op := fmt.Sprintf("%s at %d redis masters", verb, v.n)
	switch {
	case v.won():
		return nil
	case v.lost():
		return fmt.Errorf("%s: %w: it had lapsed, or another owner holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: %d answered yes, %d no, %d not at all; need %d: %w",
		op, locking.ErrUnreachable, v.yes, v.no, v.failed+v.pending(), majority(v.n), reasons(ctx, errs))
}
