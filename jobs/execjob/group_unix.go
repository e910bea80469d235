//go:build unix

package execjob

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// pollEvery is how often a group that was told to end is looked at.
const pollEvery = 20 * time.Millisecond

// ownGroup makes the command the leader of a process group of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// group is the process group that a command leads. Its number stays taken while any
// member is left, also after the command itself was waited for.
type group struct {
	pid  int
	told bool // SIGTERM was sent
}

func newGroup(cmd *exec.Cmd) *group { return &group{pid: cmd.Process.Pid} }

// terminate asks every member to end. A stopped one is continued, so that it can.
func (g *group) terminate() {
	g.told = true
	_ = g.signal(syscall.SIGTERM)
	_ = g.signal(syscall.SIGCONT)
}

// kill ends every member.
func (g *group) kill() { _ = g.signal(syscall.SIGKILL) }

// clear ends what the command left behind and returns when no member is left; those that
// remain at the deadline are killed. The command must have been waited for. errStays is
// returned when a member could not be ended: it has another user's rights, or hangs in
// the kernel.
func (g *group) clear(deadline time.Time) error {
	if !g.alive() {
		return nil
	}
	if !g.told {
		g.terminate()
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	giveUp := deadline.Add(time.Second)
	for now := range tick.C {
		switch {
		case !g.alive():
			return nil
		case now.After(giveUp):
			return errStays
		case now.After(deadline):
			g.kill()
		}
	}
	return nil
}

// alive reports whether the group has a member that has not ended. Ended members are
// reaped first where that falls to this process, as it does to a node that is process 1
// of a container; elsewhere there is no such child and the call answers ECHILD.
func (g *group) alive() bool {
	for {
		pid, err := syscall.Wait4(-g.pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return !errors.Is(g.signal(0), syscall.ESRCH) && !onlyDead(g.pid)
}

// signal sends sig to every member. The error is of use to alive only: other callers are
// content when nobody is left.
func (g *group) signal(sig syscall.Signal) error { return syscall.Kill(-g.pid, sig) }
