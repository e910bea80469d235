//go:build unix

package execjob

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// pollEvery is how often a group that was told to end is looked at.
const pollEvery = 20 * time.Millisecond

// killTakes is how long SIGKILL may take.
const killTimeout = time.Second

// Group is the process group that a command leads, for who starts commands by other
// means than a job. Its number stays taken while any member is left, also after the
// command itself was waited for. One goroutine uses it. On systems without process
// groups it is the command alone.
//
// Between Start and Close the group ends with this process, however that dies.
type Group struct {
	cmd        *exec.Cmd
	supervisor *supervisor
	terminated bool // SIGTERM was sent
}

// NewGroup makes cmd, which was not started yet, the leader of a group of its own: it sets
// cmd.SysProcAttr anew. The other methods are for when it has been started.
func NewGroup(cmd *exec.Cmd) *Group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &Group{cmd: cmd}
}

// Start starts the command. When this process is killed, the members of the group get SIGTERM, and SIGKILL half a second later.
// A shell sees to that, from when the command has started: when this process is killed in that very moment, or where there is no shell,
// Linux ends the command alone. The goroutine keeps its thread until Close: the
// kernel ends the command with the thread that started it.
func (g *Group) Start() error {
	sig := syscall.SIGTERM
	if g.supervisor = newSupervisor(); g.supervisor == nil {
		sig = syscall.SIGKILL
	}
	endWithThread(g.cmd, sig)
	runtime.LockOSThread()
	if err := g.cmd.Start(); err != nil {
		g.Close()
		return err
	}
	g.supervisor.watch(g.cmd.Process.Pid)
	return nil
}

// Close is for when the command was waited for, and nothing is to be done any more about what may be left of its group. The
// goroutine that called Start calls it, unless Start has failed.
func (g *Group) Close() {
	g.supervisor.end()
	runtime.UnlockOSThread()
}

// Signal sends s to every member. Where there are no groups, any signal ends the command.
func (g *Group) Signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = g.signal(n)
	}
}

// Terminate asks every member to end. A stopped one is continued, so that it can.
func (g *Group) Terminate() {
	g.terminated = true
	_ = g.signal(syscall.SIGTERM)
	_ = g.signal(syscall.SIGCONT)
}

// Kill ends every member.
func (g *Group) Kill() { _ = g.signal(syscall.SIGKILL) }

// clear ends what the command left behind and returns when no member is left; those that
// remain at the deadline are killed. The command must have been waited for. errStays is
// returned when a member could not be ended: it has another user's rights, or hangs in
// the kernel.
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
	for now := range tick.C {
		switch {
		case !g.Alive():
			return nil
		case !killed.IsZero() && time.Since(killed) > killTimeout:
			return errUnkillable
		case now.After(deadline):
			g.Kill()
			if killed.IsZero() { // not when it was due: this process may have stood still then
				killed = time.Now()
			}
		}
	}
	return nil
}

// Alive reports whether the group has a member that has not ended; the command itself
// must have been waited for. Ended members are reaped first where that falls to this
// process, as it does to one that is process 1 of a container; elsewhere there is no such
// child and the call answers ECHILD. Where there are no groups it is always false.
func (g *Group) Alive() bool {
	g.reap()
	if errors.Is(g.signal(0), syscall.ESRCH) {
		return false
	}
	if !onlyDead(g.cmd.Process.Pid) {
		return true
	}
	g.reap() // one may have ended in between
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

// signal sends sig to every member. The error is of use to Alive only: other callers are
// content when nobody is left.
func (g *Group) signal(sig syscall.Signal) error { return syscall.Kill(-g.cmd.Process.Pid, sig) }
