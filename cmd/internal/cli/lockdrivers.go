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

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redlock"
)

// driverFlag is where a command's own store comes from.
const driverFlag = "--driver"

// fullProgram has all drivers.
const fullProgram = "escapement-full"

// inRedis reports whether the locks are in the Redis of the configuration.
func (l Locks) inRedis() bool { return l.Driver == lockstore.Redis && len(l.Servers) == 0 }

// fault returns the fault of the store's settings: the setting's key, and words.
func (l Locks) fault() (key, words string) {
	open, known := lockstore.Drivers[l.Driver]
	switch {
	case !known:
		return "driver", fmt.Sprintf("%s is not in this program, which has %s; %s has it: go install . in cmd/%s of a clone", l.Driver, strings.Join(slices.Sorted(maps.Keys(lockstore.Drivers)), ", "), fullProgram, fullProgram)
	case l.inRedis():
		return l.misplaced()
	case len(l.Servers) == 0:
		return "servers", fmt.Sprintf("is empty, and the driver is %s; name its servers", l.Driver)
	}
	if key, words = l.misplaced(); key != "" {
		return key, words
	}
	c := l.config()
	c.Margin, c.Logger, c.Check = lockstore.Margin, slog.New(slog.DiscardHandler), true
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
func (l Locks) config() lockstore.Config {
	return lockstore.Config{Servers: l.Servers, User: l.User, Password: l.Password, Schema: l.Schema, TLS: redisconn.TLS(l.TLS)}
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
	case l.Schema != "" && l.Driver != lockstore.Postgres:
		return "schema", fmt.Sprintf("is for the driver %s, and locks.driver is %s; leave it out", lockstore.Postgres, l.Driver)
	case l.User != "" && l.Password == "" && l.Driver != lockstore.Postgres:
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
		locker, end, err := l.openLocks(newLogger(a.stderr, l.Log), lockstore.Margin, l.newClient)
		return lockStore{locker: locker, close: end}, err
	}, name, args, o)
	if errors.Is(err, locking.ErrUnreachable) {
		hint := ""
		if l.Locks.Driver == lockstore.Redlock {
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
	return lockstore.Drivers[l.Locks.Driver](c)
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

func (a *app) locksBootstrapCommand() *cobra.Command {
	c := a.command("bootstrap [--servers LIST]", "let new servers of the driver redlock vote", wants(), func(cmd *cobra.Command, _ []string) error {
		l, err := a.loadTool(cmd)
		if err != nil {
			return err
		}
		if l.Locks.Driver != lockstore.Redlock {
			return usagef("locks.driver is %s; only redlock has servers that vote", l.Locks.Driver)
		}
		clients, end, err := l.Locks.config().RedisClients()
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
