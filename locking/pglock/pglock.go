package pglock

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
)

// Config holds the settings of a Locker or a Driver. The zero value is useful, after Migrate.
type Config struct {
	Schema    string        // of the tables and functions: letters, digits, underscores; default "public"
	Namespace string        // begins their names: up to 24 small letters, digits, underscores; default "escapement"
	Margin    time.Duration // see locking.KeeperConfig; default 1 s
	Logger    *slog.Logger  // see locking.KeeperConfig; also gets failed notifications (warn); default slog.Default()

	// CallTimeout limits one call to PostgreSQL; default 1 s.
	CallTimeout time.Duration

	// Listen is how to connect for notifications: pgx.ParseConfig of a connection string, or the
	// ConnConfig of the pool's Config. It must lead to the primary itself, not through a pooler in
	// transaction mode, which cannot pass notifications on. There is one such connection, while
	// there are waiters. nil: none; each waiter then polls once a second.
	Listen *pgx.ConnConfig

	// Migrate runs Migrate when a call finds no tables. The role then needs CREATE on the schema.
	// The first call returns ErrNotOwned where Migrate would. Default false: the operator runs
	// Migrate before.
	Migrate bool
}

// New returns a Locker with its locks in pool's database. The caller closes the Locker, and then the pool. Give
// the locks a pool of their own: where other statements use up the connections, renewals wait, and leases are
// lost. Set connect_timeout to a few seconds in its connection string; the pool's default is two minutes. With a
// server that hangs, the pool's Close may take 15 s.
func New(pool *pgxpool.Pool, cfg Config) *locking.Locker {
	return locking.New(NewDriver(pool, cfg), locking.Config{Margin: cfg.Margin, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger})
}

// Driver is the locking.Driver for one PostgreSQL database. Most programs use New.
type Driver struct {
	pool     *pgxpool.Pool
	objects  objects
	addr     string // host and port of each server, for errors
	migrate  bool
	looked   atomic.Bool // see firstLook
	refused  error       // the fault of the Config: the error of each call
	notifier *notifier

	// Statements.
	acquire, renew, release, owner, revoke string
}

var (
	_ locking.Driver   = (*Driver)(nil)
	_ locking.Notifier = (*Driver)(nil)
)

// NewDriver returns a driver without a Locker. Margin and CallTimeout of cfg are not used.
func NewDriver(pool *pgxpool.Pool, cfg Config) *Driver {
	d := &Driver{pool: pool, migrate: cfg.Migrate}
	var named error
	d.objects, named = newObjects(cfg)
	if pool == nil {
		d.refused = errors.Join(named, &locking.InputError{Field: "pool", Why: "is nil; give one from pgxpool.New"})
	} else {
		d.addr, d.refused = addrOf(pool.Config().ConnConfig), named
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	d.notifier = newNotifier(cfg.Listen, d.objects.namespace, logger)
	d.acquire = d.objects.sql(`SELECT * FROM @lock_acquire(` + pinned("$1") + `, $2, $3, $4, $5, $6, $7, $8)`)
	d.renew = d.objects.sql(`SELECT @lock_renew(` + pinned("$1::pg_catalog.text[]") + `, $2, $3, $4)`)
	d.release = d.objects.sql(`SELECT @lock_release(` + pinned("$1") + `, $2)`)
	d.owner = d.objects.sql(ownerStatement)
	d.revoke = d.objects.sql(revokeStatement)
	return d
}

// addrOf returns host and port of each server of c.
func addrOf(c *pgx.ConnConfig) string {
	addrs := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		addrs = append(addrs, net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))))
	}
	return strings.Join(slices.Compact(addrs), ",") // a host is there twice when TLS is optional
}

// Listen implements locking.Notifier.
func (d *Driver) Listen(_, owner string) (<-chan struct{}, func()) { return d.notifier.listen(owner) }

// Close implements locking.Notifier.
func (d *Driver) Close() { d.notifier.close() }
