package pglock

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
)

// Codes of lock_acquire.
const (
	codeHeld     = 0
	codeGranted  = 1
	codeReturned = 2
	codeTooFar   = 3
	codeRevoked  = 4
)

// pinned returns an expression with the value of arg, an argument of a function. Its computation sets the search_path
// of the statement's transaction, before the function begins: the functions of version 1 trust the session's path,
// later ones pin their own.
func pinned(arg string) string {
	//guard:pglock-path P4 functions of version 1 call no operator that another role planted
	arg = `CASE WHEN pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true) IS NOT NULL THEN ` + arg + ` END`
	return arg
}

// ownerStatement reads the clock from before its snapshot: a lock that is renewed meanwhile is not shown as free.
const ownerStatement = `
	WITH lock AS (SELECT * FROM @locks WHERE name @= $1)
	SELECT coalesce(h.owner, ''), coalesce(h.holder, ''), coalesce(h.token, 0), coalesce(h.revoked, false),
		coalesce((extract(epoch FROM h.until @- pg_catalog.statement_timestamp())::double precision @* 1000000::double precision)::bigint, 0),
		(SELECT pg_catalog.count(*) FROM @lock_waiters w WHERE w.name @= $1 AND w.alive @> pg_catalog.statement_timestamp())
	FROM (SELECT 1) one LEFT JOIN lock h ON h.owner @<> '' AND h.until @> pg_catalog.statement_timestamp()`

const revokeStatement = `
	WITH revoked AS (
		UPDATE @locks SET revoked = true
		WHERE name @= $1 AND token @= $2 AND owner @<> '' AND until @> pg_catalog.clock_timestamp() RETURNING 1
	)
	SELECT pg_catalog.count(*) FROM revoked`

// Acquire implements locking.Driver. A TTL is rounded up to microseconds.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	channel := ""
	if r.Queue {
		channel = d.notifier.channel
	}
	asked, slept := time.Now(), locking.Slept()
	var code int
	var token, left, place int64
	var owner, holder string
	for joined := true; joined; { // at most twice
		err := d.call(ctx, "acquire", d.acquire,
			[]any{r.Name, r.Owner, r.Holder, micros(r.TTL) + micros(r.Delay), r.After, r.From, r.Queue, channel},
			&code, &token, &owner, &holder, &left, &place, &joined)
		if err != nil {
			return locking.Grant{}, err
		}
	}
	op := "acquire at postgres " + d.addr
	switch code {
	case codeGranted:
		return locking.Grant{Name: r.Name, Owner: r.Owner, Token: token, TTL: r.TTL, Delay: r.Delay, Asked: asked, Slept: slept}, nil
	case codeHeld:
		if r.Queue {
			d.notifier.connect()
		}
		return locking.Grant{}, &locking.HeldError{Name: r.Name, Owner: owner, Holder: holder, Until: duration(left), Place: int(place)}
	case codeReturned:
		return locking.Grant{}, fmt.Errorf("%s: %w: this owner has released it already", op, locking.ErrLost)
	case codeRevoked:
		return locking.Grant{}, fmt.Errorf("%s: %w: somebody has asked this holder to end, before it got the answer; acquire it again", op, locking.ErrLost)
	case codeTooFar:
		return locking.Grant{}, &locking.InputError{Lock: r.Name, Field: "Options.After",
			Why: fmt.Sprintf("is %d, more than an hour ahead of PostgreSQL's clock; give the token that the guard answered", r.After)}
	}
	return locking.Grant{}, fmt.Errorf("%s: unexpected answer %d; run pglock.Migrate", op, code)
}

// Renew implements locking.Renewer. It sends one statement for the whole batch.
func (d *Driver) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	names, owners := make([]string, len(batch)), make([]string, len(batch))
	tokens, lasts := make([]int64, len(batch)), make([]int64, len(batch))
	for i, r := range batch {
		names[i], owners[i], tokens[i], lasts[i] = r.Name, r.Owner, r.Token, micros(r.TTL)+micros(r.Delay)
	}
	var codes []int32
	if err := d.call(ctx, "renew", d.renew, []any{names, owners, tokens, lasts}, &codes); err != nil {
		return nil, err
	}
	answers := make([]locking.RenewAnswer, len(codes))
	for i, code := range codes {
		switch code {
		case 1:
			answers[i] = locking.Renewed
		case 2:
			answers[i] = locking.Revoked
		default:
			answers[i] = locking.Gone
		}
	}
	return answers, nil
}

// Release implements locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	var code int
	if err := d.call(ctx, "release", d.release, []any{name, owner}, &code); err != nil {
		return err
	}
	switch code {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("release at postgres %s: %w: another owner holds it", d.addr, locking.ErrLost)
	}
	return fmt.Errorf("release at postgres %s: %w: it had lapsed", d.addr, locking.ErrLost)
}

// Owner implements locking.Driver.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	o := locking.Ownership{Name: name}
	var left int64
	err := d.call(ctx, "owner", d.owner, []any{name}, &o.Owner, &o.Holder, &o.Token, &o.Revoked, &left, &o.Waiters)
	if err != nil {
		return locking.Ownership{}, err
	}
	if o.Held() {
		o.Left = duration(left)
	}
	return o, nil
}

// Revoke implements locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	var n int
	if err := d.call(ctx, "revoke", d.revoke, []any{name, token}, &n); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("revoke at postgres %s: %w: that grant does not hold it", d.addr, locking.ErrLost)
	}
	return nil
}

// micros converts d to microseconds, rounded up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// duration converts microseconds of a held lock, of which there is always one left.
func duration(micros int64) time.Duration {
	return time.Duration(max(micros, 1)) * time.Microsecond
}
