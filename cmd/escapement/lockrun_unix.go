//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// group is the process group that a command leads. Its number stays taken while
// any member is left, also after the command itself was waited for.
type group struct{ child *exec.Cmd }

// newGroup makes the command, which was not started yet, the leader of a group.
func newGroup(child *exec.Cmd) *group {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(child)
	takeTerminal(child)
	return &group{child}
}

// pass sends every member a signal that we got.
func (g *group) pass(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = g.signal(n)
	}
}

// terminate asks every member to end. A stopped one is continued, so that it can.
func (g *group) terminate() {
	_ = g.signal(syscall.SIGTERM)
	_ = g.signal(syscall.SIGCONT)
}

// kill ends every member.
func (g *group) kill() { _ = g.signal(syscall.SIGKILL) }

// alive reports whether a member has not ended. The command itself must have
// been waited for; others that have become our children are reaped.
func (g *group) alive() bool {
	for {
		pid, err := syscall.Wait4(-g.child.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return !errors.Is(g.signal(0), syscall.ESRCH) && !onlyDead(g.child.Process.Pid)
}

// signal's error is of use to alive only: the others are content when nobody is left.
func (g *group) signal(s syscall.Signal) error { return syscall.Kill(-g.child.Process.Pid, s) }

// childCode is how a shell shows a command's end.
func childCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return state.ExitCode()
}
