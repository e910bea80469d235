package redlock

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// ownerReply is one master's reply of owner.lua.
type ownerReply struct {
	claim
	votes bool // the lock is held there, or this master votes
}

// Owner implements locking.Driver. The holder is the owner that has the lock at a majority of the masters, with
// the same token. Waiters is always 0. A token shown during its owner's Acquire may be smaller than the granted
// one.
func (d *driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	v := votes{n: len(d.masters)} // yes: held, no: free
	var claims []claim
	var errs []error
	ask(ctx, d, question[ownerReply]{
		op: "owner", timeout: d.cfg.MasterTimeout,
		call: func(ctx context.Context, m *master) (ownerReply, error) {
			reply, err := ownerScript.Run(ctx, m.client, d.cfg.keys(name)).Slice()
			if err != nil {
				return ownerReply{}, err
			}
			return readOwner(reply)
		},
		take: func(a answer[ownerReply]) bool {
			switch {
			case a.err != nil:
				v.failed++
				errs = append(errs, a.err)
			case a.value.owner != "":
				v.yes++
				claims = append(claims, a.value.claim)
			case a.value.votes:
				v.no++
			default:
				v.failed++
			}
			return agreed(claims).masters >= majority(v.n) || v.lost()
		},
	})
	c := agreed(claims)
	switch {
	case c.masters >= majority(v.n):
		return locking.Ownership{Name: name, Owner: c.owner, Holder: c.holder, Token: c.token, Left: c.left, Revoked: c.revoked}, nil
	case v.lost():
		return locking.Ownership{Name: name}, nil
	}
	// Without a common owner the lock need not be free: the masters answered at different moments,
	// and the lock may have been taken over in between.
	return locking.Ownership{}, fmt.Errorf("owner at %d redis masters: %w: free at %d, held by %q with token %d at %d; need %d: %w",
		v.n, locking.ErrUnreachable, v.no, c.owner, c.token, c.masters, majority(v.n), reason(errs))
}

// readOwner converts the reply of owner.lua.
func readOwner(reply []any) (o ownerReply, err error) {
	var voting, revoked, left int64
	if !lockredis.Scan(reply, &voting, &o.owner, &o.token, &revoked, &left, &o.holder) {
		return o, unexpected(reply)
	}
	o.votes, o.revoked, o.left = voting == 1, revoked == 1, lockredis.Left(left)
	return o, nil
}
