package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redlock"
)

// LockConfig is the settings from which a Driver makes a locker.
type LockConfig struct {
	Servers   []string // as the driver spells them
	User      string   // for all servers, with Password; "": user and password in Servers
	Password  string
	Schema    string // of tables
	TLS       redisconn.TLS
	Namespace string
	Margin    time.Duration // see locking.Config
	Logger    *slog.Logger
	Check     bool // only judge the servers, without a connection: no locker is needed
}

// Driver makes a locker. The second function ends the locker and its connections. The error names
// the fault of the servers, and holds no password; it wraps locking.ErrUnreachable when the servers
// do not answer.
type Driver func(c LockConfig) (*locking.Locker, func(), error)

const (
	driverRedis   = "redis"
	driverRedlock = "redlock"

	driverPostgres = "postgres"
)

// drivers are the drivers of every program. Main adds further ones.
var drivers = map[string]Driver{driverRedis: oneRedis, driverRedlock: severalRedis}

// driverFlag is where a command's own store comes from.
const driverFlag = "--driver"

// fullProgram has all drivers.
const fullProgram = "escapement-full"

// inRedis reports whether the locks are in the Redis of the configuration.
func (l Locks) inRedis() bool { return l.Driver == driverRedis && len(l.Servers) == 0 }

// fault returns the fault of the store's settings: the setting's key, and words.
func (l Locks) fault() (key, words string) {
	open, known := drivers[l.Driver]
	switch {
	case !known:
		return "driver", fmt.Sprintf("%s is not in this program, which has %s; %s has it: go install . in cmd/%s of a clone", l.Driver, strings.Join(slices.Sorted(maps.Keys(drivers)), ", "), fullProgram, fullProgram)
	case l.inRedis():
		return l.misplaced()
	case len(l.Servers) == 0:
		return "servers", fmt.Sprintf("is empty, and the driver is %s; name its servers", l.Driver)
	}
	if key, words = l.misplaced(); key != "" {
		return key, words
	}
	c := l.config()
	c.Margin, c.Logger, c.Check = lockMargin, slog.New(slog.DiscardHandler), true
	_, end, err := open(c)
	if of := new(redisconn.TLSError); errors.As(err, &of) && l.TLS.has(of.Setting) {
		return "tls." + of.Setting, of.Err.Error()
	}
	if err != nil {
		return "servers", err.Error()
	}
	end()
	return "", ""
}

// config returns the driver's part of the settings.
func (l Locks) config() LockConfig {
	return LockConfig{Servers: l.Servers, User: l.User, Password: l.Password, Schema: l.Schema, TLS: redisconn.TLS(l.TLS)}
}

// misplaced returns a setting that the store does not use: its key, and words.
func (l Locks) misplaced() (key, words string) {
	for _, s := range []struct {
		key   string
		given bool
	}{{"user", l.User != ""}, {"password", l.Password != ""}, {"tls", l.TLS != TLS{}}} {
		if s.given && l.inRedis() {
			return s.key, "is for locks.servers, which is empty; the Redis of redis.url has its own"
		}
	}
	switch {
	case l.Schema != "" && l.Driver != driverPostgres:
		return "schema", fmt.Sprintf("is for the driver %s, and locks.driver is %s; leave it out", driverPostgres, l.Driver)
	case l.User != "" && l.Password == "" && l.Driver != driverPostgres:
		return "user", "has no password; set locks.password too"
	}
	return "", ""
}

// locks judges where locks are.
func (c *checker) locks() {
	if c.faults.has("locks.driver") || c.faults.has("locks.servers") {
		return
	}
	if key, words := c.Locks.fault(); key != "" {
		c.fault("locks."+key, "%s", words)
	}
}

// lockElsewhere runs a command under a lock of another store than the configuration's Redis.
func (a *app) lockElsewhere(l *loaded, name string, args []string, o locking.Options) error {
	err := a.lock(func(context.Context) (lockStore, error) {
		locker, end, err := l.openLocks(newLogger(a.stderr, l.Log), lockMargin, l.newClient)
		return lockStore{locker: locker, close: end}, err
	}, name, args, o)
	if errors.Is(err, locking.ErrUnreachable) {
		hint := ""
		if l.Locks.Driver == driverRedlock {
			hint = "; escapement locks bootstrap lets new servers vote"
		}
		return fmt.Errorf("%s: %s gives no lock: %w%s", l.locksFrom(), l.Locks.Driver, err, hint)
	}
	return err
}

// locksFrom is the flag, the variable or the line of the file that names the servers of the locks.
func (l *loaded) locksFrom() string { return l.from.of("locks.servers").at("locks.servers") }

// openLocks makes the locker of locks.driver, in the Redis of newClient where no other is named.
func (l *loaded) openLocks(log *slog.Logger, margin time.Duration, newClient func() (redis.UniversalClient, error)) (*locking.Locker, func(), error) {
	if l.Locks.inRedis() {
		client, err := newClient()
		if err != nil {
			return nil, nil, err
		}
		locker := redislock.New(client, redislock.Config{Namespace: l.Namespace, Margin: margin, Logger: log})
		return locker, func() { locker.Close(); _ = client.Close() }, nil
	}
	c := l.Locks.config()
	c.Namespace, c.Margin, c.Logger = l.Namespace, margin, log
	return drivers[l.Locks.Driver](c)
}

// guards are the lockers for jobs with a guard; end closes them.
func (l *loaded) guards(log *slog.Logger, newClient func() (redis.UniversalClient, error)) (all map[string]*locking.Locker, end func(), err error) {
	if !slices.ContainsFunc(l.jobs, func(j jobs.Job) bool { return j.Guard != "" }) {
		return nil, func() {}, nil
	}
	locker, end, err := l.openLocks(log, l.Node.MaxSkew, newClient)
	switch {
	case errors.Is(err, locking.ErrUnreachable):
		return nil, nil, fmt.Errorf("%s: %s gives no guards: %w", l.locksFrom(), l.Locks.Driver, err)
	case err != nil:
		return nil, nil, l.refused(err)
	}
	return map[string]*locking.Locker{l.Locks.Driver: locker}, end, nil
}

// oneRedis is for locks in another Redis than the configuration's.
func oneRedis(c LockConfig) (*locking.Locker, func(), error) {
	if len(c.Servers) != 1 {
		return nil, nil, fmt.Errorf("are %d, and redis has one URL; of independent servers a majority has the lock with the driver redlock", len(c.Servers))
	}
	clients, end, err := c.redisClients()
	if err != nil {
		return nil, nil, err
	}
	locker := redislock.New(clients[0], redislock.Config{Namespace: c.Namespace, Margin: c.Margin, Logger: c.Logger})
	return locker, func() { locker.Close(); end() }, nil
}

// severalRedis makes a locker whose locks need a majority of independent servers.
func severalRedis(c LockConfig) (*locking.Locker, func(), error) {
	clients, end, err := c.redisClients()
	if err != nil {
		return nil, nil, err
	}
	locker, err := redlock.New(clients, redlock.Config{Namespace: c.Namespace, Margin: c.Margin, Logger: c.Logger})
	if err != nil {
		end()
		return nil, nil, err
	}
	return locker, func() { locker.Close(); end() }, nil
}

// redisClients makes a client for each server.
func (c LockConfig) redisClients() (clients []redis.UniversalClient, end func(), err error) {
	end = func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
	for i, url := range c.Servers {
		a, err := redisconn.Parse(strings.TrimSpace(url))
		if err == nil {
			err = a.SetTLS(c.TLS)
		}
		if err == nil && c.Password != "" && !a.SetUser(c.User, c.Password) {
			err = errors.New("has a user or a password, and locks.password is set too; keep one of them")
		}
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("the URL of server %d %w", i+1, err)
		}
		clients = append(clients, a.Client())
	}
	return clients, end, nil
}

func (a *app) locksBootstrapCommand() *cobra.Command {
	c := a.command("bootstrap [--servers LIST]", "let new servers of the driver redlock vote", wants(), func(cmd *cobra.Command, _ []string) error {
		l, err := a.loadTool(cmd)
		if err != nil {
			return err
		}
		if l.Locks.Driver != driverRedlock {
			return usagef("locks.driver is %s; only redlock has servers that vote", l.Locks.Driver)
		}
		clients, end, err := l.Locks.config().redisClients()
		if err != nil {
			return err
		}
		defer end()
		ctx, stop := a.interruptible()
		defer stop()
		if err := redlock.Bootstrap(ctx, clients, redlock.Config{Namespace: l.Namespace, Logger: newLogger(a.stderr, l.Log)}); err != nil {
			return err
		}
		a.say("the %d servers vote", len(clients))
		return nil
	})
	c.Long = `Independent Redis servers that are new, or have lost what they held, grant no locks until
this was called once. Call it when no lock of theirs can be in use any more. While a
majority votes it does nothing. With servers that may remember, it says how long to wait.`
	driverFlags(c)
	return c
}

// driverFlags adds the flags for the store of locks, besides locks in config.yaml.
func driverFlags(c *cobra.Command) {
	c.Flags().String("driver", "", "the `store` of the locks: redis, redlock, zookeeper, etcd or postgres; default: locks.driver, which is redis")
	c.Flags().String("servers", "", "the store's servers, a `list` with commas; default: locks.servers; for redis --redis")
}
