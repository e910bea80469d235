package redislock

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// DefaultNamespace is the namespace of a Config that names none.
const DefaultNamespace = "escapement"

// tokenKeep is how long the token state outlives the last grant or release, in
// milliseconds: 24 h, far more than the guard and any step of a clock.
const tokenKeep = 24 * 60 * 60 * 1000

// Config sets a Locker or a Driver. Its zero value is useful.
type Config struct {
	Namespace string        // keeps installations in one Redis apart; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // default: none
}

// New returns a Locker whose locks live in client's Redis. A client with the
// wrong settings (see redisconn.Check) makes every call fail with the reason.
// The client stays the caller's to close.
func New(client redis.UniversalClient, cfg Config) *locking.Locker {
	return locking.New(NewDriver(client, cfg), locking.Config{Margin: cfg.Margin, Logger: cfg.Logger})
}

// Driver is a locking.Driver in Redis.
type Driver struct {
	client    redis.UniversalClient
	namespace string
	refused   error // what Check said
}

var _ locking.Driver = (*Driver)(nil)

// NewDriver returns a driver, for who needs one without a Locker. Of cfg it
// uses the namespace.
func NewDriver(client redis.UniversalClient, cfg Config) *Driver {
	d := &Driver{client: client, namespace: cfg.Namespace, refused: redisconn.Check(client)}
	if d.namespace == "" {
		d.namespace = DefaultNamespace
	}
	return d
}

// Acquire is described at locking.Driver. A ttl is rounded up to milliseconds.
func (d *Driver) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (locking.Grant, error) {
	if d.refused != nil {
		return locking.Grant{}, d.refused
	}
	op := "acquire at redis " + redisconn.Addr(d.client)
	ms := millis(ttl)
	asked, slept := time.Now(), locking.Slept()
	reply, err := acquireScript.Run(ctx, d.client, lockKeys(d.namespace, name),
		owner, ms, redisconn.TokenGuardMicros, tokenKeep).Slice()
	if err != nil {
		return locking.Grant{}, redisconn.Explain(op, err)
	}
	code, text, left, err := parseAcquire(reply)
	if err != nil {
		return locking.Grant{}, fmt.Errorf("%s: %w", op, err)
	}
	if code == 0 {
		return locking.Grant{}, &locking.HeldError{Name: name, Owner: text, Until: left}
	}
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return locking.Grant{}, fmt.Errorf("%s: token %q: %w", op, text, err)
	}
	whole := time.Duration(ms) * time.Millisecond
	return locking.Grant{
		Name: name, Owner: owner, Token: token, TTL: whole,
		// When an earlier call got it, the lease lasts only for what is left.
		Asked: asked.Add(min(left-whole, 0)), Slept: slept,
	}, nil
}

func parseAcquire(reply []any) (code int64, text string, left time.Duration, err error) {
	if len(reply) == 3 {
		c, ok1 := reply[0].(int64)
		t, ok2 := reply[1].(string)
		ms, ok3 := reply[2].(int64)
		if ok1 && ok2 && ok3 && (c == 0 || c == 1) {
			return c, t, time.Duration(max(ms, 0)) * time.Millisecond, nil
		}
	}
	return 0, "", 0, fmt.Errorf("unexpected reply %v of script %q; is the key of this lock used by something else?", reply, acquireScript.Name())
}

// Release is described at locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	if d.refused != nil {
		return d.refused
	}
	op := "release at redis " + redisconn.Addr(d.client)
	code, err := releaseScript.Run(ctx, d.client, lockKeys(d.namespace, name), owner, tokenKeep).Int()
	switch {
	case err != nil:
		return redisconn.Explain(op, err)
	case code == 1:
		return nil
	case code == 0:
		return fmt.Errorf("%s: %w: somebody else holds it", op, locking.ErrLost)
	}
	return fmt.Errorf("%s: %w: it had lapsed", op, locking.ErrLost)
}

// millis rounds up, because a PX of 0 is refused by Redis.
func millis(d time.Duration) int64 {
	return max(int64((d+time.Millisecond-1)/time.Millisecond), 1)
}
