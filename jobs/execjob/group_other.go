//go:build !unix

package execjob

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Group is a command alone: this system has neither process groups nor SIGTERM.
type Group struct{ cmd *exec.Cmd }

// NewGroup returns a group of cmd, which must not be started yet.
func NewGroup(cmd *exec.Cmd) *Group { return &Group{cmd} }

// EndWith does nothing: a command does not end with this process on this system, nor when this
// process stands still.
func (g *Group) EndWith(jobs.Lease) {}

// Start starts the command. The command does not end with this process on this system. The error is
// a jobs.NodeFault when this machine lacks a resource for new processes.
func (g *Group) Start() error {
	if err := g.cmd.Start(); err != nil {
		return whyNotStarted(g.cmd, err)
	}
	return nil
}

// Close does nothing. Call it after the command was waited for.
func (g *Group) Close() {}

// Signal ends the command.
func (g *Group) Signal(os.Signal) { g.Kill() }

// Terminate ends the command.
func (g *Group) Terminate() { g.Kill() }

// Kill ends the command.
func (g *Group) Kill() { _ = g.cmd.Process.Kill() }

// Alive returns false: processes that the command has started are not known.
func (g *Group) Alive() bool { return false }

// Stuck returns why the command has not ended after Kill, for people.
func (g *Group) Stuck() error {
	return fmt.Errorf("process %d was killed and has not ended", g.cmd.Process.Pid)
}

// killTimeout is how long Kill may take.
const killTimeout = time.Second

// await waits for the end of the command, which was signalled to end. It waits for a command that
// cannot be ended all the same; stuck is called once with the reason.
func (g *Group) await(exited <-chan error, _ time.Time, stuck func(error)) error {
	select {
	case err := <-exited:
		return err
	case <-time.After(killTimeout):
		stuck(g.Stuck())
	}
	return <-exited
}

func (g *Group) clear(time.Time) error { return nil }
