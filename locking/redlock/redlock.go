package redlock

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// DefaultNamespace is the namespace of a Config that names none.
	DefaultNamespace = "escapement"

	// DefaultMasterTimeout is the MasterTimeout of a Config that names none.
	DefaultMasterTimeout = 50 * time.Millisecond

	// DefaultMaxTTL is the MaxTTL of a Config that names none.
	DefaultMaxTTL = time.Minute

	// mostMasterTimeout keeps an Acquire of two phases within a few seconds.
	mostMasterTimeout = 2 * time.Second

	// slackOfCalls is for what a call of two phases does besides waiting for masters.
	slackOfCalls = 100 * time.Millisecond

	// mostMaxTTL keeps the wait of a master that lost its state within what anybody
	// waits for, and far from overflowing.
	mostMaxTTL = 60 * 24 * time.Hour

	// stateKeep is how long a lock's state outlives its last use, in milliseconds:
	// 24 h. Then the node's largest token stands for it.
	stateKeep = 24 * 60 * 60 * 1000
)

// Config sets a Locker or a Driver. Its zero value is useful.
type Config struct {
	Namespace string        // keeps installations in the same masters apart; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // gets masters that lost their state (warn) and vote again (info), and see locking.KeeperConfig; default slog.Default()

	// MasterTimeout is how long one master is waited for, in each of the two phases
	// of an acquisition. Much less than a ttl, more than a healthy round trip.
	// Default 50 ms, at most 2 s.
	MasterTimeout time.Duration

	// MaxTTL is the longest TTL and Delay together that may be asked for. A master
	// that lost its state is kept from voting for a little more than the largest
	// MaxTTL of all clients. Default 1 min, at most 60 days.
	MaxTTL time.Duration

	// CallTimeout limits one call of the Locker, which ends by itself after two
	// MasterTimeouts. At least those; default 1 s, or more where they need it.
	CallTimeout time.Duration
}

// New returns a Locker whose locks live in a majority of clients' servers: an
// odd number of masters, at least 3, that know nothing of each other. Each
// client may have a user, password and database of its own. The clients stay
// the caller's to close. The error holds an *locking.InputError for each thing
// that is refused; nothing is sent.
//
// Masters that are new do not vote until somebody calls Bootstrap, once.
func New(clients []redis.UniversalClient, cfg Config) (*locking.Locker, error) {
	d, err := NewDriver(clients, cfg)
	if err != nil {
		return nil, err
	}
	return locking.New(d, locking.Config{Margin: cfg.Margin, CallTimeout: d.cfg.CallTimeout, Logger: cfg.Logger}), nil
}

// Driver is a locking.Driver over independent masters.
type Driver struct {
	masters []*master
	cfg     Config
	grants  grants
	lanes   lanes
	attempt atomic.Int64
	calls   sync.WaitGroup // under way, those that nobody waits for included
}

var _ locking.Driver = (*Driver)(nil)

// NewDriver returns a driver, for who needs one without a Locker; see New. Of
// cfg it uses all but Margin and CallTimeout.
func NewDriver(clients []redis.UniversalClient, cfg Config) (*Driver, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.check(), checkClients(clients)); err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg}
	for _, c := range clients {
		d.masters = append(d.masters, newMaster(c))
	}
	return d, nil
}

// Wait waits for what goes on in the background after calls have returned: for a
// clean end, before clients are closed. Each part of it ends by itself within
// some MasterTimeouts, so nothing goes wrong without. Call it when no other call
// is under way.
func (d *Driver) Wait() { d.calls.Wait() }

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.MasterTimeout == 0 {
		c.MasterTimeout = DefaultMasterTimeout
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = DefaultMaxTTL
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = max(time.Second, 2*c.MasterTimeout+slackOfCalls)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) check() error {
	var errs []error
	if err := lockredis.CheckNamespace(c.Namespace, between); err != nil {
		errs = append(errs, err)
	}
	if c.MasterTimeout < time.Millisecond || c.MasterTimeout > mostMasterTimeout {
		errs = append(errs, refuse("", "Config.MasterTimeout", "is %s; use 1ms to %s", c.MasterTimeout, mostMasterTimeout))
	}
	if c.CallTimeout < 2*c.MasterTimeout {
		errs = append(errs, refuse("", "Config.CallTimeout", "is %s, less than twice MasterTimeout %s; use at least %s, or 0",
			c.CallTimeout, c.MasterTimeout, 2*c.MasterTimeout))
	}
	if c.Margin < 0 {
		errs = append(errs, refuse("", "Config.Margin", "is %s, which is negative; 0 means 1s", c.Margin))
	}
	if c.MaxTTL < 4*c.MasterTimeout {
		errs = append(errs, refuse("", "Config.MaxTTL", "is %s, less than four times MasterTimeout %s; use at least %s",
			c.MaxTTL, c.MasterTimeout, 4*c.MasterTimeout))
	}
	if c.MaxTTL > mostMaxTTL {
		errs = append(errs, refuse("", "Config.MaxTTL", "is %s; use at most %s: a master that lost its state is kept from voting for longer", c.MaxTTL, mostMaxTTL))
	}
	return errors.Join(errs...)
}

// checkClients returns every fault of the masters, joined.
func checkClients(clients []redis.UniversalClient) error {
	n := len(clients)
	if n < 3 || n%2 == 0 {
		return refuse("", "masters", "are %d; use an odd number, at least 3: an even one tolerates no more failures than one less", n)
	}
	var errs []error
	seen := make(map[string]int)
	for i, c := range clients {
		field := fmt.Sprintf("masters[%d]", i)
		if err := checkClient(field, c); err != nil {
			errs = append(errs, err)
			continue
		}
		addr := redisconn.Addr(c)
		if first, again := seen[addr]; again && !sentinel(c) {
			errs = append(errs, refuse("", field, "is %s, as masters[%d]; use servers that fail independently, not databases of one", addr, first))
		}
		seen[addr] = i
	}
	return errors.Join(errs...)
}

// checkClient returns what is wrong with one client by itself.
func checkClient(field string, c redis.UniversalClient) error {
	switch c := c.(type) {
	case *redis.ClusterClient:
		return refuse("", field, "is a Redis Cluster; use one server for each master, or package redislock")
	case *redis.Client:
		if c == nil {
			return refuse("", field, "is a nil *redis.Client; make one with redis.NewClient")
		}
	}
	if err := redisconn.Check(c); err != nil {
		return refuse("", field, "is refused: %v", err)
	}
	return nil
}

// sentinel reports whether c asks Sentinels for its server: then it is known by
// no address.
func sentinel(c redis.UniversalClient) bool {
	o, is := c.(interface{ Options() *redis.Options })
	return is && o.Options().Addr == "FailoverClient"
}

func refuse(lock, field, format string, args ...any) *locking.InputError {
	return &locking.InputError{Lock: lock, Field: field, Why: fmt.Sprintf(format, args...)}
}

// clockMicros is this client's clock, which tokens follow where they can.
func clockMicros() int64 { return time.Now().UnixMicro() }
