package redlock

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// valuePattern matches a lock's value: "token:attempt:owner", with "-" in front once it was revoked.
var valuePattern = regexp.MustCompile(`^(-?)(\d{1,16}):\d{1,16}:(.*)$`)

// ownerReply is one master's reply of owner.lua.
type ownerReply struct {
	claim claim
	taken bool // the lock is held there
	votes bool // taken, or this master votes
}

// Owner implements locking.Driver. The holder is the owner that has the lock at a majority of the masters, with
// the same token. Waiters is always 0. A token shown during its owner's Acquire may be smaller than the granted
// one.
func (d *driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (ownerReply, error) {
		reply, err := ownerScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name)).Slice()
		if err != nil {
			return ownerReply{}, m.explain("owner", err)
		}
		return readOwnerReply(reply)
	})
	v := votes{n: len(d.masters)} // yes: taken, no: free
	var claims []claim
	var errs []error
	gather(ctx, answers, v.n, d.cfg.MasterTimeout, func(a answer[ownerReply]) bool {
		switch {
		case a.err != nil:
			v.failed++
			errs = append(errs, a.err)
		case a.value.taken:
			v.yes++
			claims = append(claims, a.value.claim)
		case a.value.votes:
			v.no++
		default:
			v.failed++
		}
		_, most := agreed(claims)
		return most >= majority(v.n) || v.lost()
	})
	best, most := agreed(claims)
	switch {
	case most >= majority(v.n):
		return ownership(v, name, best, claims), nil
	case v.lost():
		return locking.Ownership{Name: name}, nil
	}
	// Without a common owner the lock need not be free: the masters were asked at different moments, and the lock
	// may have been taken over in between.
	return locking.Ownership{}, fmt.Errorf("owner at %d redis masters: %w: free at %d, held by %s with token %d at %d; need %d: %w",
		v.n, locking.ErrUnreachable, v.no, strconv.Quote(best.owner), best.token, most, majority(v.n), reasons(ctx, errs))
}

// ownership combines the claims of the owner that a majority has.
func ownership(v votes, name string, best claim, claims []claim) locking.Ownership {
	claims = slices.DeleteFunc(claims, func(c claim) bool { return c.owner != best.owner })
	o := locking.Ownership{Name: name, Owner: best.owner, Token: best.token, Left: untilFree(v.n, v.pending()+v.failed, claims)}
	for _, c := range claims {
		if o.Holder == "" {
			o.Holder = c.holder
		}
		// A majority was revoked, so one of these masters was. A claim with another token is of another grant.
		o.Revoked = o.Revoked || c.revoked && c.token == best.token
	}
	return o
}

// agreed returns a claim of the grant with the most claims, and their number.
func agreed(claims []claim) (best claim, most int) {
	type grant struct {
		owner string
		token locking.Token
	}
	counts := make(map[grant]int)
	for _, c := range claims {
		g := grant{c.owner, c.token}
		if counts[g]++; counts[g] > most {
			best, most = c, counts[g]
		}
	}
	return best, most
}

// readOwnerReply converts the reply of owner.lua.
func readOwnerReply(reply []any) (ownerReply, error) {
	var value, who string
	var left, knows int64
	if !lockredis.Scan(reply, &value, &left, &who, &knows) {
		return ownerReply{}, unexpected(reply)
	}
	if value == "" {
		return ownerReply{votes: knows == 1}, nil
	}
	return ownerReply{claim: readClaim(value, who, left), taken: true, votes: true}, nil
}

// readClaim converts a lock's value, its holder's text and its PTTL.
func readClaim(value, who string, left int64) claim {
	c := claim{owner: value, holder: who, left: lockredis.Left(left)}
	if m := valuePattern.FindStringSubmatch(value); m != nil { // else of something else; shown as it is
		c.revoked, c.owner = m[1] != "", m[3]
		c.token, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits fit
	}
	return c
}
