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

// pollEvery is how often a group is checked after SIGTERM.
const pollEvery = 20 * time.Millisecond

// killTimeout is how long SIGKILL may take.
const killTimeout = time.Second

// Group is the process group of a command, for programs that run commands without a job. On systems
// without process groups it is the command alone. One goroutine uses it.
//
// From Start to Close the group ends with this process, also when this process is killed. The
// group's number stays in use while it has members, also after the command was waited for.
type Group struct {
	cmd        *exec.Cmd
	supervisor *supervisor
	terminated bool // SIGTERM was sent
}

// NewGroup returns a group led by cmd, which must not be started yet. It replaces
// cmd.SysProcAttr. Call Start before the other methods.
func NewGroup(cmd *exec.Cmd) *Group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &Group{cmd: cmd}
}

// Start starts the command. When this process is killed, the members of the group get SIGTERM, and
// SIGKILL half a second later, from a shell. Without a shell, and during Start, Linux ends the
// command alone. The goroutine is locked to its thread until Close, because the kernel ends the
// command with the thread that started it.
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

// clear ends the remaining members, after the command was waited for: with SIGTERM, and at the
// deadline with SIGKILL. It returns errUnkillable when a member cannot be ended, because it has
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
	for now := range tick.C {
		switch {
		case !g.Alive():
			return nil
		case !killed.IsZero() && time.Since(killed) > killTimeout:
			return errUnkillable
		case now.After(deadline):
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
	g.reap() // for one that has ended since
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
func (g *Group) signal(sig syscall.Signal) error { return syscall.Kill(-g.cmd.Process.Pid, sig) }
