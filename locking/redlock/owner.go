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

// held is a lock's value: "token:attempt:owner", with "-" in front once it was revoked.
var held = regexp.MustCompile(`^(-?)(\d{1,16}):\d{1,16}:(.*)$`)

// sight is what one master shows of a lock.
type sight struct {
	claim claim
	taken bool // somebody holds it there
	knows bool // taken, or this master votes
}

// Owner is described at locking.Driver. Somebody holds the lock who has it at a
// majority of the masters, with one and the same token; Waiters is always 0. A
// token that is shown while its owner's Acquire is under way may be smaller than
// what that one is granted.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, _ int, m *master) (sight, error) {
		reply, err := ownerScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, name)).Slice()
		if err != nil {
			return sight{}, m.explain("owner", err)
		}
		return readSight(reply)
	})
	v := votes{n: len(d.masters)} // yes: taken, no: free
	var claims []claim
	var errs []error
	gather(ctx, answers, v.n, d.cfg.MasterTimeout, func(a answer[sight]) bool {
		switch {
		case a.err != nil:
			v.failed++
			errs = append(errs, a.err)
		case a.value.taken:
			v.yes++
			claims = append(claims, a.value.claim)
		case a.value.knows:
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
	// That no two masters name the same owner does not make it free: they were not
	// asked at one moment, and it may have been taken over in between.
	return locking.Ownership{}, fmt.Errorf("owner at %d redis masters: %w: %d say that it is free, %s has it with token %d at %d; want %d: %w",
		v.n, locking.ErrUnreachable, v.no, strconv.Quote(best.owner), best.token, most, majority(v.n), silence(ctx, errs))
}

// ownership sums up the claims of the owner whose grant a majority has.
func ownership(v votes, name string, best claim, claims []claim) locking.Ownership {
	claims = slices.DeleteFunc(claims, func(c claim) bool { return c.owner != best.owner })
	o := locking.Ownership{Name: name, Owner: best.owner, Token: best.token, Left: untilFree(v.n, v.pending()+v.failed, claims)}
	for _, c := range claims {
		if o.Holder == "" {
			o.Holder = c.holder
		}
		// Of a majority that was told, some master is here. A promise of another token says nothing of this grant.
		o.Revoked = o.Revoked || c.revoked && c.token == best.token
	}
	return o
}

// agreed returns the grant that most of the claims are of, and how many.
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

// readSight reads the reply of owner.lua.
func readSight(reply []any) (sight, error) {
	var value, who string
	var left, knows int64
	if !lockredis.Scan(reply, &value, &left, &who, &knows) {
		return sight{}, fmt.Errorf("unexpected reply %v; is a key of this lock used by something else?", reply)
	}
	if value == "" {
		return sight{knows: knows == 1}, nil
	}
	return sight{claim: readClaim(value, who, left), taken: true, knows: true}, nil
}

// readClaim reads a lock's value, and what stands beside it.
func readClaim(value, who string, left int64) claim {
	c := claim{owner: value, holder: who, left: lockredis.Left(left)}
	if m := held.FindStringSubmatch(value); m != nil { // else it is not ours; shown as it is
		c.revoked, c.owner = m[1] != "", m[3]
		c.token, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits fit
	}
	return c
}
