//go:build unix

package execjob

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/internal/machine"
)

// pollEvery is how often a group is checked after SIGTERM.
const pollEvery = 20 * time.Millisecond

const (
	// killTimeout is how long SIGKILL may take.
	killTimeout = time.Second
	// killGap is the time from SIGTERM to SIGKILL where the lease is over or this process is, or
	// half of the lease's margin if that is less.
	killGap = 500 * time.Millisecond
	// retryKill is the pause between two SIGKILLs to a command that the first ones did not end.
	retryKill = time.Second
)

// Group is the process group of a command, for programs that run commands without a job. On systems
// without process groups it is the command alone. One goroutine uses it.
//
// From Start to Close the group ends with this process, also when this process is killed, and with
// the lease, also when this process stands still. The group's number stays in use while it has
// members, also after the command was waited for.
type Group struct {
	cmd        *exec.Cmd
	lease      jobs.Lease // nil: none
	supervisor *supervisor
	kill       func(pid int, sig syscall.Signal) error
	terminated bool      // SIGTERM was sent
	over       time.Time // when the lease had ended; zero before
}

// NewGroup returns a group led by cmd, which must not be started yet. It replaces
// cmd.SysProcAttr. Call Start before the other methods.
func NewGroup(cmd *exec.Cmd) *Group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &Group{cmd: cmd, kill: syscall.Kill}
}

// EndWith makes the group end with a lease: with SIGTERM when the lease is over for its holder, and
// with SIGKILL half a second later, or after half of the lease's margin if that is less. Call it
// before Start.
func (g *Group) EndWith(lease jobs.Lease) { g.lease = lease }

// Start starts the command. When this process is killed, the members of the group get SIGTERM, and
// SIGKILL half a second later, from a shell. Without a shell Linux ends the command alone. The
// goroutine is locked to its thread until Close, because the kernel ends the command with the
// thread that started it.
//
// The command has one more variable, which names the group. The error is the reason why the command
// was not started; a jobs.NodeFault when this machine lacks a resource for new processes.
func (g *Group) Start() error {
	mark := newMark()
	var err error
	if g.supervisor, err = newSupervisor(g.lease, mark); err != nil {
		return machine.Fault(fmt.Errorf("start the shell that watches it: %w", err))
	}
	sig := syscall.SIGTERM
	if g.supervisor == nil {
		sig = syscall.SIGKILL
	}
	g.cmd.Env = append(g.cmd.Environ(), groupVariable+"="+mark)
	endWithThread(g.cmd, sig)
	runtime.LockOSThread()
	if err := g.cmd.Start(); err != nil {
		g.Close()
		return whyNotStarted(g.cmd, err)
	}
	g.supervisor.watch(g.cmd.Process.Pid)
	return nil
}

// Close ends the watch over the group. Call it from the goroutine of Start, after the command was
// waited for, unless Start has failed.
func (g *Group) Close() {
	g.supervisor.end()
	runtime.UnlockOSThread()
}

// Signal sends s to every member. Without process groups, any signal ends the command.
func (g *Group) Signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = g.signal(n)
	}
}

// Terminate sends SIGTERM to every member, and continues stopped ones.
func (g *Group) Terminate() {
	g.terminated = true
	_ = g.signal(syscall.SIGTERM)
	_ = g.signal(syscall.SIGCONT)
}

// Kill ends every member.
func (g *Group) Kill() { _ = g.signal(syscall.SIGKILL) }

// killDue reports whether SIGKILL is due: at the deadline, and sooner when the lease is over.
func (g *Group) killDue(deadline time.Time) bool {
	//guard:lease-cuts-grace P4 a command is killed before its lease can be another's, whatever its grace is
	if g.lease != nil && g.leaseOver() {
		return true
	}
	return time.Now().After(deadline)
}

// leaseOver reports whether the lease has been over for so long that SIGKILL is due.
func (g *Group) leaseOver() bool {
	left := g.lease.Left()
	if left > 0 {
		return false
	}
	if g.over.IsZero() {
		g.over = time.Now().Add(left) // long ago, when this process has stood still
	}
	return time.Since(g.over) >= min(killGap, g.lease.Margin()/2)
}

// await waits for the end of the command, which was signalled to end, and kills the group when that
// is due. It waits for a command that cannot be ended all the same, because nothing may run beside
// it; stuck is called once with the reason.
func (g *Group) await(exited <-chan error, deadline time.Time, stuck func(error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var killed time.Time
	for reported := false; ; {
		select {
		case err := <-exited:
			return err
		case now := <-tick.C:
			switch {
			case !g.killDue(deadline):
			case killed.IsZero():
				g.Kill()
				killed = now
			case !reported && now.Sub(killed) > killTimeout:
				reported = true
				stuck(g.Stuck())
				tick.Reset(retryKill)
			case reported:
				g.Kill() // it may be another user's no more
			}
		}
	}
}

// Stuck returns why the command has not ended after Kill, for people.
func (g *Group) Stuck() error {
	pid := g.cmd.Process.Pid
	if err := g.kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("process %d cannot be ended: %w; it has become another user's", pid, err)
	}
	return fmt.Errorf("process %d was killed and hangs in the kernel, as in a file system that does not answer", pid)
}

// clear ends the remaining members, after the command was waited for: with SIGTERM, and at the
// deadline with SIGKILL. It returns an error when a member cannot be ended, because it has
// another user's rights or hangs in the kernel.
func (g *Group) clear(deadline time.Time) error {
	if !g.Alive() {
		return nil
	}
	if !g.terminated {
		g.Terminate()
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var killed time.Time
	for range tick.C {
		switch {
		case !g.Alive():
			return nil
		case !killed.IsZero() && time.Since(killed) > killTimeout:
			return fmt.Errorf("a process of its group %d cannot be ended; look for it on the node", g.cmd.Process.Pid)
		case g.killDue(deadline):
			g.Kill()
			if killed.IsZero() { // not at the deadline: this process may have been stopped then
				killed = time.Now()
			}
		}
	}
	return nil
}

// Alive reports whether the group has a member that has not ended, after the command was waited
// for. Ended members that are children of this process, as for process 1 of a container, are
// reaped first. Without process groups it is always false.
func (g *Group) Alive() bool {
	g.reap()
	if errors.Is(g.signal(0), syscall.ESRCH) {
		return false
	}
	if !onlyDead(g.cmd.Process.Pid) {
		return true
	}
	g.reap() // a member may have ended since the first reap
	return false
}

func (g *Group) reap() {
	for {
		pid, err := syscall.Wait4(-g.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// signal sends sig to every member. Only Alive uses the error: without members there is nothing
// to signal.
func (g *Group) signal(sig syscall.Signal) error { return g.kill(-g.cmd.Process.Pid, sig) }
