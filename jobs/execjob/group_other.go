//go:build !unix

package execjob

import (
	"os"
	"os/exec"
	"time"
)

// Group is a command alone: this system has neither process groups nor SIGTERM.
type Group struct{ cmd *exec.Cmd }

// NewGroup returns a group of cmd, which must not be started yet.
func NewGroup(cmd *exec.Cmd) *Group { return &Group{cmd} }

// Start starts the command. The command does not end with this process on this system.
func (g *Group) Start() error { return g.cmd.Start() }

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

func (g *Group) clear(time.Time) error { return nil }
