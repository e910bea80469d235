package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// Release implements locking.Driver. It returns when a majority has answered; a master that gives
// no answer gets the request twice more, in the background.
func (d *driver) Release(ctx context.Context, name, owner string) error {
	d.grants.remove(owner, 0)
	number := d.nextAttempt()
	return d.verdict(ctx, question[int]{
		op: "release",
		call: func(ctx context.Context, m *master) (int, error) {
			return d.sendRelease(ctx, m, name, owner, number, true).Int()
		},
		then: func(a answer[int]) {
			if a.err != nil {
				d.repeatRelease(a.master, name, owner, number, true, 1)
			}
		},
	})
}

// sendRelease releases the owner's attempts up to upto at one master.
func (d *driver) sendRelease(ctx context.Context, m *master, name, owner string, upto int64, release bool) *redis.Cmd {
	return releaseScript.Run(ctx, m.client, d.cfg.keys(name), owner, upto, release, stateKeep)
}

// repeatRelease calls sendRelease until it succeeds, with a pause of MasterTimeout before each try but the first of three.
func (d *driver) repeatRelease(m *master, name, owner string, upto int64, release bool, try int) {
	for ; try < 3; try++ {
		if try > 0 {
			<-time.After(d.cfg.MasterTimeout)
		}
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.MasterTimeout)
		err := d.sendRelease(ctx, m, name, owner, upto, release).Err()
		cancel()
		if err == nil || errors.Is(err, redis.ErrClosed) {
			return
		}
	}
}

// Revoke implements locking.Driver.
func (d *driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	return d.verdict(ctx, question[int]{
		op: "revoke",
		call: func(ctx context.Context, m *master) (int, error) {
			return revokeScript.Run(ctx, m.client, d.cfg.keys(name), token).Int()
		},
	})
}

// verdict counts the codes that masters answer, until a majority agrees, and converts them to an error.
func (d *driver) verdict(ctx context.Context, q question[int]) error {
	v := votes{n: len(d.masters)}
	var errs []error
	q.timeout = d.cfg.MasterTimeout
	q.take = func(a answer[int]) bool {
		if a.err != nil {
			errs = append(errs, a.err)
		}
		v.count(a.value, a.err)
		return v.over()
	}
	ask(ctx, d, q)
	op := fmt.Sprintf("%s at %d redis masters", q.op, v.n)
	switch {
	case v.won():
		return nil
	case v.lost():
		return fmt.Errorf("%s: %w: it had lapsed, or another owner holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: %d answered yes, %d no, %d not at all; need %d: %w",
		op, locking.ErrUnreachable, v.yes, v.no, v.failed, majority(v.n), reason(errs))
}
