// Package lock has the command lock, and the tools for locks.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// lockName is the command that exits with the code of another one.
const lockName = "lock"

// The exit codes of lock besides those of every command.
const (
	exitLost        = 75
	exitNotRunnable = 126
	exitNoCommand   = 127
	exitSignal      = 128 // and the signal's number
)

// commandError ends the program with the code of the command that lock has run.
type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit status %d of the command", int(e)) }
func (e commandError) Unwrap() error { return command.Ended(e) }

// Lock makes the command lock.
func Lock(a *command.App) *cobra.Command {
	var ttl, wait, delay string
	var permits int
	lock := a.Command(lockName+" NAME [--ttl D] [--wait D] [--delay D] [--permits N] [--driver D --servers LIST] -- COMMAND ...", "run a command under a lock", wantsCommand,
		func(cmd *cobra.Command, args []string) error {
			o, err := lockOptions(ttl, wait, delay, permits)
			if err != nil {
				return err
			}
			l, err := a.Load(cmd, false, true)
			if err != nil {
				return err
			}
			if !l.Locks.InRedis() {
				return lockElsewhere(a, l, args[0], args[1:], o)
			}
			return a.ConnectRedis(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
				return lockInRedis(a, l, client, args[0], args[1:], o)
			})
		})
	lock.Long = `Takes the lock NAME, runs COMMAND, gives the lock back when it has ended, and exits with
its code: 128 and n when signal n ended it. The lock is kept alive meanwhile. COMMAND
sees ` + config.LockVariable + `, the name, and ` + config.TokenVariable + `, the fencing token, in its environment.

Other codes: 5 when the lock could not be had within --wait, 6 when Redis could not be
reached, 127 and 126 when COMMAND is not there or cannot be executed, and 75 when the
lock was lost before it could be given back: because Redis did not answer in time, because
somebody asked for it (locks release), or because this machine slept. COMMAND then gets
SIGTERM, and SIGKILL half a second later. When Redis did not answer or somebody asked for it,
that is before anybody else can have the lock; only locks release --force gives it away at once.

With --permits N, N commands run under NAME at once, each with a token of its own. Whoever
says another N, while one runs or waits, is refused with code 2.

COMMAND may exit with any of these itself. When the code is not COMMAND's, and only then,
the last line on stderr is
  escapement: exit code N is ours: WHY

COMMAND leads a process group of its own, which SIGINT, SIGTERM, SIGHUP and SIGQUIT are
passed on to. What it leaves running there is ended before the lock is given back.`
	lock.Example = `escapement lock nightly-backup -- pg_dump -f /backup/shop.sql shop
escapement lock deploy --wait 10m --ttl 30s -- ./deploy.sh --region eu
escapement lock report-db --permits 3 --wait 1h -- ./report.sh
escapement lock ledger --driver redlock --servers redis://a:6379,redis://b:6379,redis://c:6379 -- ./close-books.sh`
	lock.Flags().StringVar(&ttl, "ttl", "15s", "how long Redis keeps the lock when it hears nothing, `D`: at least 3s")
	driverFlags(lock)
	lock.Flags().StringVar(&wait, "wait", "0s", "how long to wait for the lock, `D`; those who wait get it in their order")
	lock.Flags().StringVar(&delay, "delay", "0s", "how much longer nobody has the lock when this process was lost, `D`: for a COMMAND that works on")
	lock.Flags().IntVar(&permits, "permits", 1, "how many hold NAME at once, a `number`: all who ask for NAME say the same")
	lock.Flags().VarP(&helpFlag{lock: lock}, "help", "h", "help for lock")
	lock.Flags().Lookup("help").NoOptDefVal = "true"
	a.Failed = reportOwnCode(a, lock)
	lock.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if before := cmd.Flags().Args(); len(before) > 1 { // NAME and a word of the command
			return dashMissing(before)
		}
		return err
	})
	return lock
}

// reportOwnCode returns the function that prints after an error of lock that the exit code is not the
// command's. It waits for a reader for wordsWithin at most.
func reportOwnCode(a *command.App, lock *cobra.Command) func(*cobra.Command, error) {
	return func(cmd *cobra.Command, err error) {
		if cmd != lock || errors.As(err, new(commandError)) {
			return
		}
		code, why, front := command.ExitCode(err), "the command was not run", ""
		if code == exitLost {
			why, front = "the lock was lost", "\n" // the command may have left off in the middle of a line
		}
		printed := make(chan struct{})
		go func() {
			fmt.Fprintf(a.Stderr, "%sescapement: exit code %d is ours: %s\n", front, code, why)
			close(printed)
		}()
		select {
		case <-printed:
		case <-time.After(wordsWithin):
		}
	}
}

// thisProcess names the caller for people: its kind, the machine and the process.
func thisProcess(what string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("%s on %s, pid %d", what, strings.ToValidUTF8(host[:min(len(host), 64)], ""), os.Getpid())
}

// lockInRedis runs a command under a lock of the configuration's Redis.
func lockInRedis(a *command.App, l *config.Loaded, client redis.UniversalClient, name string, args []string, o locking.Options) error {
	cfg := redislock.Config{Namespace: l.Namespace, Margin: lockstore.Margin, Confirm: l.Confirm(), Logger: a.Logger(l.Log)}
	store := func(ctx context.Context) (lockStore, error) {
		if cfg.Confirm == scheduler.ConfirmMajority {
			var err error
			if cfg.Confirm, err = redisconn.Majority(ctx, client); err != nil {
				return lockStore{}, err
			}
		}
		evicts := readEvicts(client)
		locker := redislock.New(client, cfg)
		return lockStore{locker, locker.Close, func(ctx context.Context) { redisconn.LoadTopology(ctx, client) }, evicts, true}, nil
	}
	return lock(a, store, name, args, o)
}

// lockStore is where a lock is.
type lockStore struct {
	locker *locking.Locker
	close  func()
	ready  func(ctx context.Context) // before the lock is acquired; nil: nothing
	evicts <-chan string             // gets the policy by which the store drops locks; nil: it drops none
	listed bool                      // locks get lists the locks
}

// lock runs a command under a lock of a store.
func lock(a *command.App, open func(ctx context.Context) (lockStore, error), name string, args []string, o locking.Options) error {
	child := exec.Command(args[0], args[1:]...) //nolint:gosec // the user's own command
	if child.Err != nil {                       // a mistyped command is reported before the wait for the lock
		return notStarted(a, args[0], child.Err)
	}
	signals := catch()
	defer signal.Stop(signals)
	store, err := open(context.Background())
	if err != nil {
		return err
	}
	defer store.close() // a place in the line is given up before this process ends
	lease, err := acquire(a, store, name, o, signals)
	if err != nil {
		return err
	}
	warnEvicts(a, store.evicts)
	child.Stdin, child.Stdout, child.Stderr = a.Stdin, a.Stdout, a.Stderr
	child.Env = childEnv(a, lease)
	u := &underLock{lease: lease, child: child, signals: signals, report: a.Report}
	code, err := u.run()
	released := u.release()
	switch {
	case u.lost:
		if u.killAt.IsZero() { // else it was printed at that time
			a.Report("lock %q was lost before it could be given back", name)
		}
		if err == nil { // else the command was not run, which the code shows
			return command.Ended(exitLost)
		}
	case released != nil:
		a.Report("%v; the lock could not be given back, and is free in %s at most", released, o.TTL)
	}
	switch {
	case err != nil:
		return notStarted(a, args[0], err)
	case code != command.ExitDone:
		return commandError(code)
	}
	return nil
}

// warnEvicts warns of a Redis that may drop the lock. The lock is held, and the command must not
// wait.
func warnEvicts(a *command.App, evicts <-chan string) {
	if evicts == nil {
		return
	}
	select {
	case policy := <-evicts:
		if policy != "" {
			a.Report("Redis drops keys when its memory is full (maxmemory-policy %s), and a lock that it drops is free; set noeviction", policy)
		}
	case <-time.After(evictsWithin):
	}
}

// catch returns the signals that are passed on to the command. A signal that our parent has set to
// be ignored (nohup) stays ignored. A message to a pipe without a reader must not end us, and leave
// the command alone: until the end of the program SIGPIPE has no effect here, and the usual effect
// on the command.
func catch() chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// caught is a signal that ended the wait for a lock.
type caught struct{ os.Signal }

func (c caught) Error() string { return c.String() }

// acquire takes the lock, unless a signal comes first.
func acquire(a *command.App, store lockStore, name string, o locking.Options, signals <-chan os.Signal) (*locking.Lease, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	answered := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-signals:
			cancel(caught{s})
		case <-answered:
		}
	})
	if store.ready != nil {
		store.ready(ctx)
	}
	lease, err := store.locker.Acquire(ctx, name, o)
	close(answered)
	watch.Wait()
	var c caught
	stopped := errors.As(context.Cause(ctx), &c)
	if lease != nil && stopped {
		if err := lease.Release(ctx); err != nil {
			a.Report("%v; the lock could not be given back, and is free in %s at most", err, o.TTL)
		}
	}
	if stopped {
		a.Report("lock %q: the wait ended by %s; the command was not run", name, c)
		return nil, command.Ended(signalCode(c.Signal))
	}
	return lease, explainRefusal(name, o.Wait, store.listed, err)
}

// signalCode is how a shell shows that a signal was the end.
func signalCode(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return exitSignal + int(n)
}

// evictsWithin is how much longer than for its lock a command waits for Redis' eviction policy.
const evictsWithin = 50 * time.Millisecond

// readEvicts reads the policy by which Redis drops keys: "" for none, for a policy that the user may
// not read, and for an unreachable Redis.
func readEvicts(client redis.UniversalClient) <-chan string {
	answer := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		policy, _ := redisconn.Evicts(ctx, client) // other faults show in the lock's own calls
		answer <- policy
	}()
	return answer
}
