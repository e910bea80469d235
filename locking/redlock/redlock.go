package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// The defaults of Config.
	defaultNamespace     = "escapement"
	defaultMasterTimeout = 50 * time.Millisecond
	defaultMaxTTL        = time.Minute

	// maxMasterTimeout limits an Acquire of two phases to a few seconds.
	maxMasterTimeout = 2 * time.Second

	// callSlack is the time for a call of two phases besides waiting for masters.
	callSlack = 100 * time.Millisecond

	// longestMaxTTL bounds the time for which a master that lost its state does not vote.
	longestMaxTTL = 60 * 24 * time.Hour

	// stateKeep is how long a lock's state outlives its last use, in milliseconds: 24 h. After that the
	// largest token of any lock at the master takes its place.
	stateKeep = 24 * 60 * 60 * 1000
)

// Config holds the settings of a Locker. The zero value is useful.
type Config struct {
	Namespace string        // separates installations in the same masters; no braces; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // see locking.KeeperConfig; also gets masters that lose their state (warn) and vote again (info); default slog.Default()

	// MasterTimeout is how long to wait for a master, in each of the two phases of an acquisition: much less
	// than a TTL, more than a round trip. 1 ms to 2 s. Default 50 ms.
	MasterTimeout time.Duration

	// MaxTTL is the longest TTL and Delay together that Acquire accepts. A master that lost its state does not
	// vote for a little longer than the largest MaxTTL of all clients. At least four MasterTimeouts, at most
	// 60 days. Default 1 min.
	MaxTTL time.Duration

	// CallTimeout limits one call of the Locker. At least two MasterTimeouts. Default 1 s, or two
	// MasterTimeouts and 0.1 s if that is more.
	CallTimeout time.Duration
}

// New returns a Locker with its locks in a majority of clients' servers: an odd number of independent
// masters, at least 3. Each client may have its own user, password and database. The caller closes the
// Locker, and then the clients. The error holds an *locking.InputError for each argument that is refused;
// nothing is sent.
//
// New masters grant no locks until Bootstrap is called once.
func New(clients []redis.UniversalClient, cfg Config) (*locking.Locker, error) {
	d, err := newDriver(clients, cfg)
	if err != nil {
		return nil, err
	}
	return locking.New(d, locking.Config{Margin: cfg.Margin, CallTimeout: d.cfg.CallTimeout, Logger: cfg.Logger}), nil
}

// driver is the locking.Driver over independent masters.
type driver struct {
	masters []*master
	cfg     Config
	grants  grants

	mu       sync.Mutex
	attempt  int64     // number of the last one
	rejoined time.Time // when rejoin looked last
	running  int       // calls under way, also after their caller has returned
	idle     sync.Cond // running is 0
}

var _ locking.Driver = (*driver)(nil)

// newDriver returns the driver for New. Margin and CallTimeout are the Locker's.
func newDriver(clients []redis.UniversalClient, cfg Config) (*driver, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.check(), checkClients(clients)); err != nil {
		return nil, err
	}
	d := &driver{cfg: cfg, grants: grants{given: make(map[string]grant)}}
	d.idle.L = &d.mu
	for i, c := range clients {
		d.masters = append(d.masters, &master{client: c, addr: redisconn.Addr(c), index: i})
	}
	return d, nil
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	c.MasterTimeout = cmp.Or(c.MasterTimeout, defaultMasterTimeout)
	c.MaxTTL = cmp.Or(c.MaxTTL, defaultMaxTTL)
	c.CallTimeout = cmp.Or(c.CallTimeout, max(time.Second, 2*c.MasterTimeout+callSlack))
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) check() error {
	var errs []error
	if err := lockredis.CheckNamespace(c.Namespace, keyInfix); err != nil {
		errs = append(errs, err)
	}
	if c.MasterTimeout < time.Millisecond || c.MasterTimeout > maxMasterTimeout {
		errs = append(errs, refuse("", "Config.MasterTimeout", "is %s; use 1ms to %s", c.MasterTimeout, maxMasterTimeout))
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
	if c.MaxTTL > longestMaxTTL {
		errs = append(errs, refuse("", "Config.MaxTTL", "is %s; use at most %s: a master that lost its state does not vote for that time", c.MaxTTL, longestMaxTTL))
	}
	return errors.Join(errs...)
}

// checkClients returns an *locking.InputError for each fault of the masters, joined.
func checkClients(clients []redis.UniversalClient) error {
	n := len(clients)
	if n < 3 || n%2 == 0 {
		return refuse("", "masters", "are %d; use an odd number, at least 3: an even number tolerates no more failures than one less", n)
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

// checkClient returns an error for a client that cannot be a master.
func checkClient(field string, c redis.UniversalClient) error {
	if _, is := c.(*redis.ClusterClient); is {
		return refuse("", field, "is a Redis Cluster; use one server for each master, or package redislock")
	}
	if err := redisconn.Check(c); err != nil {
		return refuse("", field, "is refused: %v", err)
	}
	return nil
}

// sentinel reports whether c gets its server from Sentinels, so that its address is not known.
func sentinel(c redis.UniversalClient) bool {
	o, is := c.(interface{ Options() *redis.Options })
	return is && o.Options().Addr == "FailoverClient"
}

func refuse(lock, field, format string, args ...any) *locking.InputError {
	return &locking.InputError{Lock: lock, Field: field, Why: fmt.Sprintf(format, args...)}
}
