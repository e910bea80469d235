package redislock

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Codes of acquire.lua and share_acquire.lua.
const (
	codeHeld     = 0
	codeGranted  = 1
	codeReturned = 2
	codeTooFar   = 3
	codeRevoked  = 4
	codeOther    = 5
)

// acquired returns the reply of acquire.lua as a list that begins with the code. For a grant the script
// returns the token alone, because Redis sends a list in two packets.
func acquired(cmd *redis.Cmd) ([]any, error) {
	if token, is := cmd.Val().(string); is {
		return []any{int64(codeGranted), token}, cmd.Err()
	}
	return cmd.Slice()
}

// readAcquired converts the reply of acquire.lua or share_acquire.lua to a token or an error.
func (d *Driver) readAcquired(r locking.Request, reply []any, op string) (locking.Token, error) {
	var code, left, place int64
	var text, who string
	if lockredis.Scan(reply, &code, &text) && code == codeGranted {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: token %q: %w", op, text, err)
		}
		return token, nil
	}
	if !lockredis.Scan(reply, &code, &text, &left, &place, &who) {
		return 0, unexpected(op, reply)
	}
	switch code {
	case codeHeld:
		return 0, &locking.HeldError{Name: r.Name, Owner: text, Holder: who, Until: lockredis.Left(left), Place: int(place)}
	case codeOther:
		return 0, d.otherKind(r.Name, text)
	case codeReturned:
		return 0, fmt.Errorf("%s: %w: this owner has released it already", op, locking.ErrLost)
	case codeRevoked:
		return 0, fmt.Errorf("%s: %w: somebody has asked this holder to end, before it got the answer; acquire it again", op, locking.ErrLost)
	case codeTooFar:
		return 0, &locking.InputError{Lock: r.Name, Field: "Options.After",
			Why: fmt.Sprintf("is %d, more than an hour ahead of Redis' clock; give the token that the guard answered", r.After)}
	}
	return 0, unexpected(op, reply)
}

// valuePattern matches a lock's value: "token:owner", with "-" in front once it was revoked.
var valuePattern = regexp.MustCompile(`^(-?)(\d{1,16}):(.*)$`)

// readOwners converts the reply of owner.lua. The second result is the Ownership of a free lock.
func readOwners(name string, reply []any, op string) (holders []locking.Ownership, nobody locking.Ownership, err error) {
	var waiters, left, weight int64
	var kind, value, who string
	if len(reply) < 2 || !lockredis.Scan(reply[:2], &waiters, &kind) {
		return nil, nobody, unexpected(op, reply)
	}
	nobody = locking.Ownership{Name: name, Waiters: int(waiters), Share: readKind(kind, 1)}
	for _, one := range reply[2:] {
		if of, _ := one.([]any); !lockredis.Scan(of, &value, &left, &who, &weight) {
			return nil, nobody, unexpected(op, reply)
		}
		o := nobody
		o.Owner, o.Holder, o.Left, o.Share = value, who, lockredis.Left(left), readKind(kind, weight)
		if m := valuePattern.FindStringSubmatch(value); m != nil { // else a key of something else, shown as it is
			o.Revoked, o.Owner = m[1] != "", m[3]
			o.Token, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits fit
		}
		holders = append(holders, o)
	}
	return holders, nobody, nil
}

// lostUnless converts the code of release.lua or revoke.lua.
func lostUnless(code int, op string) error {
	switch code {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("%s: %w: another owner holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: it had lapsed", op, locking.ErrLost)
}

func unexpected(op string, reply []any) error {
	return fmt.Errorf("%s: unexpected reply %v; check that nothing else writes to the lock's keys", op, reply)
}
