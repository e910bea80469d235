package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

// lockElsewhere runs a command under a lock of another store than the configuration's Redis.
func lockElsewhere(a *command.App, l *config.Loaded, name string, args []string, o locking.Options) error {
	err := lock(a, func(context.Context) (lockStore, error) {
		locker, end, err := l.OpenLocks(a.Logger(l.Log), lockstore.Margin, l.NewClient)
		return lockStore{locker: locker, close: end}, err
	}, name, args, o)
	if errors.Is(err, locking.ErrUnreachable) {
		hint := ""
		if l.Locks.Driver == lockstore.Redlock {
			hint = "; escapement locks bootstrap lets new servers vote"
		}
		return fmt.Errorf("%s: %s gives no lock: %w%s", l.LocksFrom(), l.Locks.Driver, err, hint)
	}
	return err
}

func locksBootstrapCommand(a *command.App) *cobra.Command {
	c := a.Command("bootstrap [--servers LIST]", "let new servers of the driver redlock vote", command.Wants(), func(cmd *cobra.Command, _ []string) error {
		l, err := a.Load(cmd, false, true)
		if err != nil {
			return err
		}
		if l.Locks.Driver != lockstore.Redlock {
			return command.Usagef("locks.driver is %s; only redlock has servers that vote", l.Locks.Driver)
		}
		clients, end, err := l.Locks.Store().RedisClients()
		if err != nil {
			return err
		}
		defer end()
		ctx, stop := a.Interruptible()
		defer stop()
		if err := redlock.Bootstrap(ctx, clients, redlock.Config{Namespace: l.Namespace, Logger: a.Logger(l.Log)}); err != nil {
			return err
		}
		a.Report("the %d servers vote", len(clients))
		return nil
	})
	c.Long = `Independent Redis servers that are new, or have lost what they held, grant no locks until
this was called once. Call it when no lock of theirs can be in use any more. While a
majority votes it does nothing. With servers that may remember, it says how long to wait.`
	c.Example = `escapement locks bootstrap --driver redlock --servers redis://a:6379,redis://b:6379,redis://c:6379`
	driverFlags(c)
	return c
}

// driverFlags adds the flags for the store of locks, besides locks in config.yaml.
func driverFlags(c *cobra.Command) {
	c.Flags().String("driver", "", "the `store` of the locks: redis, redlock, zookeeper, etcd or postgres; default: locks.driver, which is redis")
	c.Flags().String("servers", "", "the store's servers, a `list` with commas; default: locks.servers; for redis --redis")
}
