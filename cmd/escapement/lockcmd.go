package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// lockMargin is by how much a holder is told before Redis gives its lock away.
const lockMargin = time.Second

// lockName is the command that exits with the code of another one.
const lockName = "lock"

// What a command under a lock sees.
const (
	tokenVariable = envPrefix + "TOKEN"
	lockVariable  = envPrefix + "LOCK"
)

func (a *app) lockCommand() *cobra.Command {
	var ttl, wait, delay string
	var permits int
	lock := a.command(lockName+" NAME [--ttl D] [--wait D] [--delay D] [--permits N] -- COMMAND ...", "run a command under a lock", wantsCommand,
		func(cmd *cobra.Command, args []string) error {
			o, err := lockOptions(ttl, wait, delay, permits)
			if err != nil {
				return err
			}
			return a.reach(cmd, func(l *loaded, client redis.UniversalClient) error { return a.lock(l, client, args[0], args[1:], o) })
		})
	lock.Long = `Takes the lock NAME, runs COMMAND, gives the lock back when it has ended, and exits with
its code: 128 and n when signal n ended it. The lock is kept alive meanwhile. COMMAND
sees ` + lockVariable + `, the name, and ` + tokenVariable + `, the fencing token, in its environment.

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

// tellOurs says that an exit code is not the command's. Nobody may read it.
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

// thisProcess says who does something, for people: what it is, the machine and the process.
func thisProcess(what string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("%s on %s, pid %d", what, strings.ToValidUTF8(host[:min(len(host), 64)], ""), os.Getpid())
}

func (a *app) lock(l *loaded, client redis.UniversalClient, name string, args []string, o locking.Options) error {
	child := exec.Command(args[0], args[1:]...) //nolint:gosec // it is what was asked for
	if child.Err != nil {                       // nobody waits for a lock to be told of a slip of the keyboard
		return a.notStarted(args[0], child.Err)
	}
	signals := catch()
	defer signal.Stop(signals)
	cfg := redislock.Config{Namespace: l.Namespace, Margin: lockMargin, Confirm: l.confirm(), Logger: newLogger(a.stderr, l.Log)}
	if cfg.Confirm == scheduler.ConfirmMajority {
		var err error
		if cfg.Confirm, err = redisconn.Majority(context.Background(), client); err != nil {
			return err
		}
	}
	evicts := askEvicts(client)
	locker := redislock.New(client, cfg)
	defer locker.Close() // a place in the line is given up before this process ends
	lease, err := a.acquire(client, locker, name, o, signals)
	if err != nil {
		return err
	}
	select {
	case policy := <-evicts:
		if policy != "" {
			a.say("Redis drops keys when its memory is full (maxmemory-policy %s), and a lock that it drops is free; set noeviction", policy)
		}
	case <-time.After(evictsWithin): // the lock is there, and the command is not to wait
	}
	child.Stdin, child.Stdout, child.Stderr = a.stdin, a.stdout, a.stderr
	child.Env = a.childEnv(lease)
	u := &underLock{lease: lease, child: child, signals: signals, say: a.say}
	code, err := u.run()
	released := u.release()
	switch {
	case u.lost:
		if u.killAt.IsZero() { // else it was said at that time
			a.say("lock %q was lost before it could be given back", name)
		}
		if err == nil { // else the command was not run, which is what the code says
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

// catch returns the signals that are passed on to the command. One that whoever
// started us wants to be ignored (nohup) stays ignored. A word to a pipe that
// nobody reads any more must not end us, and leave the command to itself: to the
// end of the program SIGPIPE does nothing here, and to the command what it always does.
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
func (a *app) acquire(client redis.UniversalClient, locker *locking.Locker, name string, o locking.Options, signals <-chan os.Signal) (*locking.Lease, error) {
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
	redisconn.LoadTopology(ctx, client)
	lease, err := locker.Acquire(ctx, name, o)
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
	return lease, notHad(name, o.Wait, err)
}

// signalCode is how a shell shows that a signal was the end.
func signalCode(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return exitSignal + int(n)
}

// worded is an error in other words.
type worded struct {
	text string
	err  error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.err }

// notHad says why a lock could not be had, in the words of the command line.
func notHad(name string, wait time.Duration, err error) error {
	var held *locking.HeldError
	if errors.As(err, &held) {
		waited := "not waited for: --wait D waits"
		if wait > 0 {
			waited = "waited for " + shortDuration(wait) + " in vain: wait longer with --wait"
		}
		until := ""
		if held.Until > 0 { // else nobody knows
			until = ", for " + brief(held.Until) + " more unless it is renewed"
		}
		return worded{fmt.Sprintf("lock %q is held by %s%s; %s, and locks get shows who has it", name, who(held.Holder, held.Owner), until, waited), err}
	}
	return asInput(err)
}

// who names a holder: what it said of itself, or its owner value.
func who(holder, owner string) string { return cmp.Or(holder, "owner "+owner) }

// brief is a time left, to the tenth of a second.
func brief(d time.Duration) string { return shortDuration(max(0, d).Round(100 * time.Millisecond)) }

// notStarted says why a command was not run; the exit code is the one a shell has for that.
func (a *app) notStarted(command string, err error) error {
	code, words := exitNotRunnable, "cannot be executed"
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code, words = exitNoCommand, "was not found"
	}
	var looked *exec.Error
	var started *fs.PathError
	if errors.As(err, &looked) {
		err = looked.Err // the others have the command once more
	} else if errors.As(err, &started) {
		err = started.Err
	}
	a.say("command %s %s: %v", quote(command), words, err)
	return endedError(code)
}

// childEnv is our environment, and what the command is to know of its lock.
func (a *app) childEnv(lease *locking.Lease) []string {
	all := maps.Clone(a.env)
	all[lockVariable], all[tokenVariable] = lease.Name(), strconv.FormatInt(lease.Token(), 10)
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}
