package redlock

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
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
// majority of the masters; Waiters is always 0.
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
		return agreed(claims) >= majority(v.n) || v.lost()
	})
	best, count := strongest(claims)
	switch {
	case count >= majority(v.n):
		return ownership(v, name, best, claims), nil
	case count+v.failed+v.pending() < majority(v.n):
		return locking.Ownership{Name: name}, nil // nobody can have a majority
	}
	return locking.Ownership{}, fmt.Errorf("owner at %d redis masters: %w: %d say that it is free, %s has it at %d; want %d: %w",
		v.n, locking.ErrUnreachable, v.no, strconv.Quote(best.owner), count, majority(v.n), silence(ctx, errs))
}

// ownership sums up the claims of the owner who has a majority.
func ownership(v votes, name string, best claim, claims []claim) locking.Ownership {
	claims = slices.DeleteFunc(claims, func(c claim) bool { return c.owner != best.owner })
	o := locking.Ownership{Name: name, Owner: best.owner, Left: untilFree(v.n, v.pending()+v.failed, claims)}
	tokens := make(map[locking.Token]int)
	for _, c := range claims {
		if o.Holder == "" {
			o.Holder = c.holder
		}
		o.Revoked = o.Revoked || c.revoked // of a majority that was told, some master is here
		if tokens[c.token]++; tokens[c.token] > tokens[o.Token] {
			o.Token = c.token
		}
	}
	return o
}

// agreed returns how many of the claims at most are of one grant.
func agreed(claims []claim) (most int) {
	type grant struct {
		owner string
		token locking.Token
	}
	counts := make(map[grant]int)
	for _, c := range claims {
		g := grant{c.owner, c.token}
		counts[g]++
		most = max(most, counts[g])
	}
	return most
}

// readSight reads the reply of owner.lua.
func readSight(reply []any) (sight, error) {
	var value, who string
	var left, knows int64
	if !redisconn.Scan(reply, &value, &left, &who, &knows) {
		return sight{}, fmt.Errorf("unexpected reply %v; is a key of this lock used by something else?", reply)
	}
	if value == "" {
		return sight{knows: knows == 1}, nil
	}
	c := claim{owner: value, holder: who, left: max(ms(left), 0)}
	if m := held.FindStringSubmatch(value); m != nil { // else it is not ours; shown as it is
		c.revoked, c.owner = m[1] != "", m[3]
		c.token, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits fit
	}
	return sight{claim: c, taken: true, knows: true}, nil
}
