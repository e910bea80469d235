package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redlock"
)

// lockElsewhere runs a command under a lock of another store than the configuration's Redis.
func (a *app) lockElsewhere(l *config.Loaded, name string, args []string, o locking.Options) error {
	err := a.lock(func(context.Context) (lockStore, error) {
		locker, end, err := l.OpenLocks(newLogger(a.stderr, l.Log), lockstore.Margin, l.NewClient)
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

func (a *app) locksBootstrapCommand() *cobra.Command {
	c := a.command("bootstrap [--servers LIST]", "let new servers of the driver redlock vote", wants(), func(cmd *cobra.Command, _ []string) error {
		l, err := a.loadTool(cmd)
		if err != nil {
			return err
		}
		if l.Locks.Driver != lockstore.Redlock {
			return usagef("locks.driver is %s; only redlock has servers that vote", l.Locks.Driver)
		}
		clients, end, err := l.Locks.Store().RedisClients()
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
