package cli

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

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// lockName is the command that exits with the code of another one.
const lockName = "lock"

func (a *app) lockCommand() *cobra.Command {
	var ttl, wait, delay string
	var permits int
	lock := a.command(lockName+" NAME [--ttl D] [--wait D] [--delay D] [--permits N] [--driver D --servers LIST] -- COMMAND ...", "run a command under a lock", wantsCommand,
		func(cmd *cobra.Command, args []string) error {
			o, err := lockOptions(ttl, wait, delay, permits)
			if err != nil {
				return err
			}
			l, err := a.loadTool(cmd)
			if err != nil {
				return err
			}
			if !l.Locks.InRedis() {
				return a.lockElsewhere(l, args[0], args[1:], o)
			}
			return a.reach(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
				return a.lockInRedis(l, client, args[0], args[1:], o)
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
	lock.Flags().StringVar(&ttl, "ttl", "15s", "how long Redis keeps the lock when it hears nothing, `D`: at least 3s")
	driverFlags(lock)
	lock.Flags().StringVar(&wait, "wait", "0s", "how long to wait for the lock, `D`; those who wait get it in their order")
	lock.Flags().StringVar(&delay, "delay", "0s", "how much longer nobody has the lock when this process was lost, `D`: for a COMMAND that works on")
	lock.Flags().IntVar(&permits, "permits", 1, "how many hold NAME at once, a `number`: all who ask for NAME say the same")
	lock.Flags().VarP(&helpFlag{lock: lock}, "help", "h", "help for lock")
	lock.Flags().Lookup("help").NoOptDefVal = "true"
	lock.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if before := cmd.Flags().Args(); len(before) > 1 { // NAME and a word of the command
			return dashMissing(before)
		}
		return err
	})
	return lock
}

// tellOurs prints that an exit code is not the command's. It waits for a reader for wordsWithin at
// most.
func (a *app) tellOurs(code int) {
	why, front := "the command was not run", ""
	if code == exitLost {
		why, front = "the lock was lost", "\n" // the command may have left off in the middle of a line
	}
	said := make(chan struct{})
	go func() {
		fmt.Fprintf(a.stderr, "%sescapement: exit code %d is ours: %s\n", front, code, why)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(wordsWithin):
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
func (a *app) lockInRedis(l *config.Loaded, client redis.UniversalClient, name string, args []string, o locking.Options) error {
	cfg := redislock.Config{Namespace: l.Namespace, Margin: lockstore.Margin, Confirm: l.Confirm(), Logger: newLogger(a.stderr, l.Log)}
	store := func(ctx context.Context) (lockStore, error) {
		if cfg.Confirm == scheduler.ConfirmMajority {
			var err error
			if cfg.Confirm, err = redisconn.Majority(ctx, client); err != nil {
				return lockStore{}, err
			}
		}
		evicts := askEvicts(client)
		locker := redislock.New(client, cfg)
		return lockStore{locker, locker.Close, func(ctx context.Context) { redisconn.LoadTopology(ctx, client) }, evicts, true}, nil
	}
	return a.lock(store, name, args, o)
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
func (a *app) lock(open func(ctx context.Context) (lockStore, error), name string, args []string, o locking.Options) error {
	child := exec.Command(args[0], args[1:]...) //nolint:gosec // the user's own command
	if child.Err != nil {                       // a mistyped command is reported before the wait for the lock
		return a.notStarted(args[0], child.Err)
	}
	signals := catch()
	defer signal.Stop(signals)
	store, err := open(context.Background())
	if err != nil {
		return err
	}
	defer store.close() // a place in the line is given up before this process ends
	lease, err := a.acquire(store, name, o, signals)
	if err != nil {
		return err
	}
	a.sayEvicts(store.evicts)
	child.Stdin, child.Stdout, child.Stderr = a.stdin, a.stdout, a.stderr
	child.Env = a.childEnv(lease)
	u := &underLock{lease: lease, child: child, signals: signals, say: a.say}
	code, err := u.run()
	released := u.release()
	switch {
	case u.lost:
		if u.killAt.IsZero() { // else it was printed at that time
			a.say("lock %q was lost before it could be given back", name)
		}
		if err == nil { // else the command was not run, which the code shows
			return endedError(exitLost)
		}
	case released != nil:
		a.say("%v; the lock could not be given back, and is free in %s at most", released, o.TTL)
	}
	switch {
	case err != nil:
		return a.notStarted(args[0], err)
	case code != exitDone:
		return commandError(code)
	}
	return nil
}

// sayEvicts warns of a Redis that may drop the lock. The lock is held, and the command must not
// wait.
func (a *app) sayEvicts(evicts <-chan string) {
	if evicts == nil {
		return
	}
	select {
	case policy := <-evicts:
		if policy != "" {
			a.say("Redis drops keys when its memory is full (maxmemory-policy %s), and a lock that it drops is free; set noeviction", policy)
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
func (a *app) acquire(store lockStore, name string, o locking.Options, signals <-chan os.Signal) (*locking.Lease, error) {
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
			a.say("%v; the lock could not be given back, and is free in %s at most", err, o.TTL)
		}
	}
	if stopped {
		a.say("lock %q: the wait ended by %s; the command was not run", name, c)
		return nil, endedError(signalCode(c.Signal))
	}
	return lease, notHad(name, o.Wait, store.listed, err)
}

// signalCode is how a shell shows that a signal was the end.
func signalCode(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return exitSignal + int(n)
}

// evictsWithin is how much longer than for its lock a command waits for Redis' eviction policy.
const evictsWithin = 50 * time.Millisecond

// askEvicts reads the policy by which Redis drops keys: "" for none, for a policy that the user may
// not read, and for an unreachable Redis.
func askEvicts(client redis.UniversalClient) <-chan string {
	answer := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		policy, _ := redisconn.Evicts(ctx, client) // other faults show in the lock's own calls
		answer <- policy
	}()
	return answer
}
