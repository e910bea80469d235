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

// defaultNamespace is the namespace of a Config without one.
const defaultNamespace = "escapement"

const (
	// stateKeep is how long the token state outlives the lock, in milliseconds: 24 h, far more than the
	// guard and any step of a clock, and an hour between two renewals that extend it.
	stateKeep = 25 * 60 * 60 * 1000

	// maxQueue bounds a lock's queue. Further waiters poll, with jitter.
	maxQueue = 1000
)

// Config holds the settings of a Locker or a Driver. The zero value is useful.
type Config struct {
	Namespace string        // separates installations in one Redis; no braces; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // see locking.KeeperConfig; also gets failed notifications (warn); default slog.Default()

	// Confirm is how many replicas must have stored a grant before it counts. With r replicas at each
	// master, (r+1)/2 of them and the master are a majority; redisconn.Majority counts them. It costs a
	// round trip to the replicas, and makes it rarer that a failover loses a grant. With too few answers
	// the lock is released, and the error wraps ErrUnconfirmed and locking.ErrUnreachable. Default 0.
	Confirm int

	// CallTimeout limits one call to Redis; default 1 s.
	CallTimeout time.Duration
}

// New returns a Locker with its locks in client's Redis. The caller closes the Locker, and then the client.
// With a client that has wrong settings (see redisconn.Check), each call returns an *locking.InputError that
// names the option to set.
func New(client redis.UniversalClient, cfg Config) *locking.Locker {
	return locking.New(NewDriver(client, cfg), locking.Config{Margin: cfg.Margin, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger})
}

// Driver is the locking.Driver for one logical Redis. Most programs use New.
type Driver struct {
	client    redis.UniversalClient
	namespace string
	confirm   int
	refused   error // the fault of the client or the Config: the error of each call
	notifier  *notifier
	scripts   scripts
	kind      string // of a share, see share.lua; "" of a lock
	weight    int    // how many permits of it
}

var (
	_ locking.Driver   = (*Driver)(nil)
	_ locking.Notifier = (*Driver)(nil)
	_ locking.Sharer   = (*Driver)(nil)
)

// NewDriver returns a driver without a Locker, for List. Margin and CallTimeout of cfg are not used.
func NewDriver(client redis.UniversalClient, cfg Config) *Driver {
	d := &Driver{client: client, namespace: cfg.Namespace, confirm: cfg.Confirm, scripts: lockScripts}
	if d.namespace == "" {
		d.namespace = defaultNamespace
	}
	d.refused = errors.Join(checkClient(client), cfg.check())
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	d.notifier = newNotifier(client, d.namespace, uuid.NewString(), logger)
	return d
}

// checkClient runs redisconn.Check. Its error is an *InputError, because a retry would not help.
func checkClient(client redis.UniversalClient) error {
	if err := redisconn.Check(client); err != nil {
		return &locking.InputError{Field: "client", Why: "cannot be used: " + err.Error()}
	}
	return nil
}

func (c Config) check() error {
	var errs []error
	if err := lockredis.CheckNamespace(c.Namespace, keyInfix); err != nil {
		errs = append(errs, err)
	}
	if c.Confirm < 0 {
		errs = append(errs, &locking.InputError{Field: "Config.Confirm", Why: fmt.Sprintf("is %d, which is negative; 0 waits for no replica", c.Confirm)})
	}
	return errors.Join(errs...)
}

// Acquire implements locking.Driver. A TTL is rounded up to milliseconds.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if d.refused != nil {
		return locking.Grant{}, d.refused
	}
	op := "acquire at redis " + redisconn.Addr(d.client)
	channel := ""
	if r.Queue {
		channel = d.notifier.channel(r.Name)
	}
	asked, slept := time.Now(), locking.Slept()
	reply, err := d.runAcquire(ctx, r, d.acquireArgs(r, channel))
	if isOtherKind(err) {
		return locking.Grant{}, d.usedAs(ctx, r.Name, err)
	}
	if err != nil {
		return locking.Grant{}, d.explain(ctx, op, err)
	}
	token, err := d.readAcquired(r, reply, op)
	if err != nil {
		if r.Queue {
			d.notifier.connect(ctx, r.Name)
		}
		return locking.Grant{}, err
	}
	return locking.Grant{
		Name: r.Name, Owner: r.Owner, Token: token, Delay: r.Delay,
		TTL: time.Duration(lockredis.Millis(r.TTL)) * time.Millisecond, Asked: asked, Slept: slept,
	}, nil
}

// acquireArgs returns the arguments of acquire.lua or share_acquire.lua, without trailing arguments
// that have no value: each costs time.
func (d *Driver) acquireArgs(r locking.Request, channel string) []any {
	args := []any{r.Owner, lockredis.Millis(r.TTL), r.Holder, lockredis.Millis(r.Delay), channel, r.After, r.From}
	given := []bool{true, true, r.Holder != "", r.Delay > 0, channel != "", r.After > 0, r.From > 0}
	for !given[len(args)-1] {
		args = args[:len(args)-1]
	}
	if d.kind != "" {
		args = append([]any{d.kind, d.weight}, args...)
	}
	return args
}

// Release implements locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	code, err := d.code(ctx, "release", d.scripts.release, name, owner)
	if err != nil && !isOtherKind(err) {
		return err
	}
	return lostUnless(code, "release at redis "+redisconn.Addr(d.client))
}

// Revoke implements locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	code, err := d.code(ctx, "revoke", revokeScript, name, token)
	if err != nil {
		return err
	}
	return lostUnless(code, "revoke at redis "+redisconn.Addr(d.client))
}

// Owner implements locking.Driver.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	holders, nobody, err := d.owners(ctx, name)
	if len(holders) == 0 {
		return nobody, err
	}
	return holders[0], nil
}

// Listen implements locking.Notifier.
func (d *Driver) Listen(name, owner string) (<-chan struct{}, func()) {
	return d.notifier.listen(name, owner)
}

// Close implements locking.Notifier.
func (d *Driver) Close() { d.notifier.close() }

// code runs a script whose reply is one number.
func (d *Driver) code(ctx context.Context, op string, s *redisconn.Script, name string, args ...any) (int, error) {
	if d.refused != nil {
		return 0, d.refused
	}
	code, err := s.Run(ctx, d.client, lockKeys(d.namespace, name), args...).Int()
	if err != nil {
		return 0, d.explain(ctx, op+" at redis "+redisconn.Addr(d.client), err)
	}
	return code, nil
}

// explain runs redisconn.Classify, and has a Cluster client reload its topology when a master is unreachable.
func (d *Driver) explain(ctx context.Context, op string, err error) error {
	err = redisconn.Classify(op, err)
	redisconn.Refresh(ctx, d.client, err)
	return err
}

// queueTimeout is locking.QueueTimeout in milliseconds.
const queueTimeout = int64(locking.QueueTimeout / time.Millisecond)
