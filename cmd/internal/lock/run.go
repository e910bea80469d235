package lock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/jobs/execjob"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// killAfter is the time between SIGTERM and SIGKILL for a command whose lock
	// was lost: the SIGTERM comes a margin before Redis gives the lock away, so
	// the command is dead half a margin before.
	killAfter = lockstore.Margin / 2

	// leftGrace is the same for processes that a command left running when it ended by itself: the
	// lock is still ours.
	leftGrace = 5 * time.Second

	// clockEvery is how often the clocks are compared: a timer does not fire while
	// the machine sleeps, nor right when it wakes up.
	clockEvery = 100 * time.Millisecond

	// clearEvery is how often a group is checked that was ordered to end.
	clearEvery = 20 * time.Millisecond

	// wordsWithin is how long the end waits for messages without a reader.
	wordsWithin = time.Second

	// stuckAfter is how long SIGKILL may take.
	stuckAfter = time.Second
)

// underLock is a command that runs while a lock is held.
type underLock struct {
	lease   *locking.Lease
	child   *exec.Cmd
	signals <-chan os.Signal
	report  func(format string, args ...any)

	group  *execjob.Group
	lost   bool      // the lock, before the command had ended
	stuck  bool      // a process of the command could not be ended
	killAt time.Time // once lost
	words  sync.WaitGroup
}

// post prints a message without waiting for its reader: a full pipe must not keep the command
// alive.
func (u *underLock) post(format string, args ...any) {
	u.words.Go(func() { u.report(format, args...) })
}

// flush waits until all messages are printed, for wordsWithin at most.
func (u *underLock) flush() {
	done := make(chan struct{})
	go func() { u.words.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(wordsWithin):
	}
}

// run returns when the command, and all of its process group, has ended; the error is why it was
// not started.
func (u *underLock) run() (code int, err error) {
	u.group = newGroup(u.child)
	u.group.EndWith(u.lease)
	if u.lease.Context().Err() != nil { // we did not execute since it was granted
		u.lost = true
		u.post("the command was not run: %v", context.Cause(u.lease.Context()))
		return 0, nil
	}
	if err := u.group.Start(); err != nil {
		return 0, err
	}
	defer u.group.Close()
	exited := make(chan error, 1)
	go func() { exited <- u.child.Wait() }()
	err = u.watch(exited)
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		u.post("what the command read or wrote was cut off: %v", err)
	}
	u.lost = u.lost || !u.lease.Valid()
	u.clear()
	return childCode(u.child.ProcessState), nil
}

// watch waits for the command, passes signals on to it, and ends it when the
// lock is lost.
func (u *underLock) watch(exited <-chan error) error {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	over := u.lease.Context().Done()
	var kill, stuck <-chan time.Time
	for {
		select {
		case err := <-exited:
			return err
		case s := <-u.signals:
			u.group.Signal(s)
		case <-kill:
			u.group.Kill()
			stuck = time.After(stuckAfter)
		case <-stuck:
			u.stuck = true
			u.post("the command does not end: %v; the lock lapses, and this program waits for the command", u.group.Stuck())
		case <-over:
		case <-tick.C:
		}
		if over != nil && u.lease.Context().Err() != nil {
			over = nil
			u.terminate()
			kill = time.After(time.Until(u.killAt))
		}
	}
}

// terminate is the first of two steps that end the command.
func (u *underLock) terminate() {
	u.lost = true
	u.group.Terminate()
	u.killAt = time.Now()
	if deadline := u.lease.Deadline(); deadline.Before(u.killAt) {
		u.killAt = deadline // this process stood still when the lease ended
	}
	u.killAt = u.killAt.Add(killAfter)
	u.post("the command is ended, within %s: %v", killAfter, context.Cause(u.lease.Context()))
}

// clear ends the processes that the command left in its group: they would work on without the lock.
// A signal, or the loss of the lock, ends the patience.
func (u *underLock) clear() {
	if !u.group.Alive() {
		return
	}
	var deadline, killed time.Time
	switch {
	case !u.lost:
		u.group.Terminate()
		deadline = time.Now().Add(leftGrace)
	case u.killAt.IsZero(): // the command had ended before anybody looked
		u.terminate()
		fallthrough
	default:
		deadline = u.killAt
	}
	tick := time.NewTicker(clearEvery)
	defer tick.Stop()
	for u.group.Alive() {
		select {
		case <-u.signals:
			deadline = time.Now()
		case <-tick.C:
		}
		if !u.lost && u.lease.Context().Err() != nil {
			u.terminate()
			deadline = u.killAt
		}
		switch {
		case !killed.IsZero() && time.Since(killed) > stuckAfter:
			u.stuck = true
			u.post("a process that the command left behind, in group %d, cannot be ended; look for it on this machine. The lock is not given back, it lapses", u.child.Process.Pid)
			return
		case time.Since(deadline) > 0:
			u.group.Kill()
			if killed.IsZero() { // not when it was due: we may not have executed then
				killed = time.Now()
			}
		}
	}
}

// release gives the lock back, also a lost one: it may not have lapsed yet, and the command has
// ended. For a lost lock one call is enough. Where a process of the command still runs, the lock is
// left to lapse.
func (u *underLock) release() error {
	defer u.flush()
	if u.stuck {
		u.lease.Close()
		return nil
	}
	if !u.lost {
		err := u.lease.Release(context.Background())
		u.lost = errors.Is(err, locking.ErrLost)
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- u.lease.Release(context.Background()) }() // three calls; ctx does not end them
	select {
	case err := <-answered:
		return err
	case <-time.After(redisconn.CallTimeout):
		return locking.ErrUnreachable
	}
}
