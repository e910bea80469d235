package redislock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// DefaultNamespace is the namespace of a Config that names none.
const DefaultNamespace = "escapement"

const (
	// stateKeep is how long the token state outlives the lock, in milliseconds: 24 h,
	// far more than the guard and any step of a clock, and the hour between two renewals that keep it.
	stateKeep = 25 * 60 * 60 * 1000

	// mostInLine bounds a lock's line. Whoever finds it full asks again, with jitter.
	mostInLine = 1000
)

// Config sets a Locker or a Driver. Its zero value is useful.
type Config struct {
	Namespace string        // keeps installations in one Redis apart; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // see locking.KeeperConfig; gets connections for calls that fail, too (warn); default slog.Default()

	// Confirm is how many replicas must have a grant before it counts: with r
	// replicas at each master, (r+1)/2 make a majority of all copies (redisconn.Majority counts them). It costs a
	// round trip to the replicas, narrows what a failover can lose, and does not
	// close it. Too few answers: the lock is given back, and the error wraps
	// ErrUnreachable. Default 0.
	Confirm int

	// CallTimeout limits one call to Redis; default 1 s.
	CallTimeout time.Duration
}

// New returns a Locker whose locks live in client's Redis. A client with the
// wrong settings (see redisconn.Check) makes every call fail with an *InputError that says the reason.
// The client stays the caller's to close.
func New(client redis.UniversalClient, cfg Config) *locking.Locker {
	return locking.New(NewDriver(client, cfg), locking.Config{Margin: cfg.Margin, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger})
}

// Driver is a locking.Driver in Redis.
type Driver struct {
	client    redis.UniversalClient
	namespace string
	confirm   int
	refused   error // what Check said
	calls     *notifier
}

var (
	_ locking.Driver   = (*Driver)(nil)
	_ locking.Notifier = (*Driver)(nil)
)

// NewDriver returns a driver, for who needs one without a Locker. Of cfg it
// uses all but Margin and CallTimeout.
func NewDriver(client redis.UniversalClient, cfg Config) *Driver {
	d := &Driver{client: client, namespace: cfg.Namespace, confirm: cfg.Confirm}
	if d.namespace == "" {
		d.namespace = DefaultNamespace
	}
	d.refused = errors.Join(checkClient(client), cfg.check())
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	d.calls = newNotifier(client, d.namespace, uuid.NewString(), logger)
	return d
}

// checkClient is redisconn.Check, as an *InputError: asking again is of no avail.
func checkClient(client redis.UniversalClient) error {
	if err := redisconn.Check(client); err != nil {
		return &locking.InputError{Field: "client", Why: "cannot be used: " + err.Error()}
	}
	return nil
}

func (c Config) check() error {
	var errs []error
	if err := lockredis.CheckNamespace(c.Namespace, between); err != nil {
		errs = append(errs, err)
	}
	if c.Confirm < 0 {
		errs = append(errs, &locking.InputError{Field: "Config.Confirm", Why: fmt.Sprintf("is %d, which is negative; 0 waits for no replica", c.Confirm)})
	}
	return errors.Join(errs...)
}

// Acquire is described at locking.Driver. A ttl is rounded up to milliseconds.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if d.refused != nil {
		return locking.Grant{}, d.refused
	}
	op := "acquire at redis " + redisconn.Addr(d.client)
	channel := ""
	if r.Queue {
		channel = d.calls.channel(r.Name)
	}
	asked, slept := time.Now(), locking.Slept()
	reply, err := d.ask(ctx, r.Name, acquireArgs(r, channel))
	if err != nil {
		return locking.Grant{}, d.explain(ctx, op, err)
	}
	token, err := readAcquired(r, reply, op)
	if err != nil {
		if r.Queue {
			d.calls.connect(ctx, r.Name)
		}
		return locking.Grant{}, err
	}
	return locking.Grant{
		Name: r.Name, Owner: r.Owner, Token: token, Delay: r.Delay,
		TTL: time.Duration(lockredis.Millis(r.TTL)) * time.Millisecond, Asked: asked, Slept: slept,
	}, nil
}

// acquireArgs are the arguments of acquire.lua, without the last ones that say nothing: each costs time.
func acquireArgs(r locking.Request, channel string) []any {
	args := []any{r.Owner, lockredis.Millis(r.TTL), r.Holder, lockredis.Millis(r.Delay), channel, r.After, r.From}
	given := []bool{true, true, r.Holder != "", r.Delay > 0, channel != "", r.After > 0, r.From > 0}
	for !given[len(args)-1] {
		args = args[:len(args)-1]
	}
	return args
}

// Release is described at locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	code, err := d.code(ctx, "release", releaseScript, name, owner)
	if err != nil {
		return err
	}
	return lostUnless(code, "release at redis "+redisconn.Addr(d.client))
}

// Revoke is described at locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	code, err := d.code(ctx, "revoke", revokeScript, name, token)
	if err != nil {
		return err
	}
	return lostUnless(code, "revoke at redis "+redisconn.Addr(d.client))
}

// Owner is described at locking.Driver.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	if d.refused != nil {
		return locking.Ownership{}, d.refused
	}
	op := "owner at redis " + redisconn.Addr(d.client)
	reply, err := ownerScript.Run(ctx, d.client, lockKeys(d.namespace, name)).Slice()
	if err != nil {
		return locking.Ownership{}, d.explain(ctx, op, err)
	}
	return readOwner(name, reply, op)
}

// Listen is described at locking.Waker.
func (d *Driver) Listen(name, owner string) (<-chan struct{}, func()) {
	return d.calls.listen(name, owner)
}

// Close is described at locking.Waker.
func (d *Driver) Close() { d.calls.close() }

// code runs a script that answers with one number.
func (d *Driver) code(ctx context.Context, what string, s *redisconn.Script, name string, args ...any) (int, error) {
	if d.refused != nil {
		return 0, d.refused
	}
	code, err := s.Run(ctx, d.client, lockKeys(d.namespace, name), args...).Int()
	if err != nil {
		return 0, d.explain(ctx, what+" at redis "+redisconn.Addr(d.client), err)
	}
	return code, nil
}

// explain is redisconn.Classify, after which a Cluster client looks who is master.
func (d *Driver) explain(ctx context.Context, op string, err error) error {
	err = redisconn.Classify(op, err)
	redisconn.Refresh(ctx, d.client, err)
	return err
}

// patience is locking.Patience as the scripts want it.
const patience = int64(locking.QueueTimeout / time.Millisecond)
