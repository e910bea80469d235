package redislock

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Codes of the scripts; each script says what they mean there.
const (
	codeHeld     = 0
	codeGranted  = 1
	codeReturned = 2
	codeTooFar   = 3
	codeRevoked  = 4
)

// acquired is the reply of acquire.lua: a code first also where it granted, of which it says nothing but the token.
// That spares Redis a list, which it sends in two pieces.
func acquired(cmd *redis.Cmd) ([]any, error) {
	if token, is := cmd.Val().(string); is {
		return []any{int64(codeGranted), token}, cmd.Err()
	}
	return cmd.Slice()
}

// readAcquired reads the reply of acquire.lua: a token, or the error that it means.
func readAcquired(r locking.Request, reply []any, op string) (locking.Token, error) {
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
	case codeReturned:
		return 0, fmt.Errorf("%s: %w: this owner has given it back already", op, locking.ErrLost)
	case codeRevoked:
		return 0, fmt.Errorf("%s: %w: somebody has asked this holder to end, before it had heard that it holds the lock; acquire it again", op, locking.ErrLost)
	case codeTooFar:
		return 0, &locking.InputError{Lock: r.Name, Field: "Options.After",
			Why: fmt.Sprintf("is %d, more than an hour ahead of Redis' clock; which guard says so?", r.After)}
	}
	return 0, unexpected(op, reply)
}

// held is a lock's value: "token:owner", with "-" in front once it was revoked.
var held = regexp.MustCompile(`^(-?)(\d{1,16}):(.*)$`)

// readOwner reads the reply of owner.lua.
func readOwner(name string, reply []any, op string) (locking.Ownership, error) {
	var left, waiters int64
	var value, who string
	if !lockredis.Scan(reply, &value, &left, &who, &waiters) {
		return locking.Ownership{}, unexpected(op, reply)
	}
	o := locking.Ownership{Name: name, Waiters: int(waiters)}
	if value == "" {
		return o, nil
	}
	o.Holder, o.Left = who, lockredis.Left(left)
	m := held.FindStringSubmatch(value)
	if m == nil { // not ours; shown as it is, and left alone
		o.Owner = value
		return o, nil
	}
	o.Revoked, o.Owner = m[1] != "", m[3]
	o.Token, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits fit
	return o, nil
}

// lostUnless turns the code of a release or a revocation into an error.
func lostUnless(code int, op string) error {
	switch code {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("%s: %w: somebody else holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: it had lapsed", op, locking.ErrLost)
}

func unexpected(op string, reply []any) error {
	return fmt.Errorf("%s: unexpected reply %v; is a key of this lock used by something else?", op, reply)
}
